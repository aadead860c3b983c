// A pane: an editor for one text, a list of examples, and the problems of the text.
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
  EditorView,
  drawSelection,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { element } from "./dom.js";
import { completions, description } from "./schema.js";

// The colours are variables of the page, so that the editor also changes between light and dark mode.
const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--field)", color: "var(--text)", fontSize: "0.875rem", maxHeight: "70vh" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--selection)",
  },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--border)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    background: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".about": { padding: "0.25rem 0.5rem", maxWidth: "28rem" },
});
const COLOURS = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
    { tag: [tags.comment, tags.lineComment], color: "var(--faint)" },
    { tag: [tags.meta, tags.labelName, tags.keyword], color: "var(--accent)" },
  ]),
);

export class Pane {
  constructor(place, { examples, schema, text, changed }) {
    this.place = place;
    const title = place.querySelector("h2").textContent;
    const tools = element("div", { class: "tools" }, this.#examples(title, examples));
    // In a shadow root, the editor adds its styles by script, which the content security policy allows.
    const host = element("div", { class: "editor" });
    place.append(tools, host);
    const root = host.attachShadow({ mode: "open" });
    this.view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          yaml(),
          indentUnit.of("  "),
          closeBrackets(),
          lintGutter(),
          ...(schema ? [autocompletion({ override: [completions(schema)], icons: false }), hoverTooltip(hover(schema))] : []),
          // The Tab key is not bound, so it moves to the next field, as usual on a page.
          keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          LOOK,
          COLOURS,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": `${title}, YAML`, tabindex: "0" }),
          EditorView.updateListener.of((update) => update.docChanged && changed()),
        ],
      }),
    });
    if (text) place.open = true;
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
    if (text) this.place.open = true;
  }

  // Underline the lines of these problems: {line, severity, message, rule?, fix?}.
  mark(faults) {
    const { doc } = this.view.state;
    const found = faults.map(({ line, severity, message, rule, fix }) => {
      const at = doc.line(Math.min(Math.max(line ?? 1, 1), doc.lines));
      const indent = at.text.search(/\S|$/);
      return {
        from: at.from + indent,
        to: at.to,
        severity,
        message: [message, fix].filter(Boolean).join(". "),
        source: rule,
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, found));
  }

  goTo(number) {
    this.place.open = true;
    const line = this.view.state.doc.line(Math.min(number, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: line.to }, effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
    this.view.focus();
  }

  #examples(title, examples) {
    const select = element(
      "select",
      {},
      element("option", { value: "" }, "Choose ..."),
      ...examples.map(({ name }, index) => element("option", { value: index }, name)),
      element("option", { value: "none" }, "Empty"),
    );
    select.addEventListener("change", () => {
      this.text = select.value === "none" ? "" : examples[Number(select.value)].text;
      select.value = "";
    });
    return element("label", {}, `${title} example: `, select);
  }
}

function hover(schema) {
  return (view, position) => {
    const about = description(schema, view.state.doc, position);
    if (!about) return null;
    return { pos: about.from, end: about.to, create: () => ({ dom: element("div", { class: "about" }, about.text) }) };
  };
}
