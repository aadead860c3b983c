"""A user's actions on the page, with keyboard and mouse."""

from typing import Any


def fix_a_job(tab: Any) -> None:
    """Request too many workers, read the rejection, and apply its fix."""
    status = tab.locator("#status")
    tab.locator("#job select").select_option(label="Openmpi pi")
    status.filter(has_text="openmpi-pi would be admitted").wait_for()
    tab.locator("#job .cm-line", has_text="replicas: 2").click()
    tab.keyboard.press("End")
    tab.keyboard.type("00")
    status.filter(has_text="openmpi-pi would be rejected, 1 problem").wait_for()
    problem = tab.locator("li.problem")
    assert "200 workers, at most 100 allowed" in problem.inner_text()
    assert "Set replicas to 100 or fewer." in problem.inner_text()
    problem.get_by_role("button").click()
    for _ in "200":
        tab.keyboard.press("Backspace")
    tab.keyboard.type("100")
    status.filter(has_text="openmpi-pi would be admitted").wait_for()
