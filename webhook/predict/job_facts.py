"""What an own rule may read as `job`: facts that would take an expression many lines to work out."""

import msgspec

from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.resources import asking_for_devices, is_accelerator
from webhook.kit.context import Context
from webhook.predict import devices


class JobFacts(msgspec.Struct, frozen=True, rename="camel"):
    """The variable `job`."""

    workers: int
    """Worker pods, without the launcher."""
    gpus_per_worker: int
    """Accelerators of a worker, by resources and by claims."""
    total_gpus: int
    """Accelerators of all workers and of the launcher."""
    slots: int
    """`slotsPerWorker`, 1 where it is not set."""
    images: tuple[str, ...]
    """Of all containers, init containers and image volumes, each once."""
    accelerator: str
    """The resource that the accelerators are, as nvidia.com/gpu; empty where the job asks for none by that."""
    queue: str
    """The LocalQueue that the job names; empty for none."""


def job_facts(job: MPIJob, ctx: Context) -> JobFacts:
    """The facts of a job with the operator's defaults."""
    patterns = ctx.admitted.accelerators
    each = devices.of_each(job.worker, patterns, ctx)
    launcher = devices.of_each(job.launcher, patterns, ctx)
    names = devices.names(patterns, ctx)
    templates = [replica.template for _, _, replica in reversed(job.replicas())]  # the workers' accelerator first
    return JobFacts(
        workers=job.workers,
        gpus_per_worker=each,
        total_gpus=job.workers * each + launcher,
        slots=job.spec.slots_per_worker or 1,
        images=tuple(dict.fromkeys(image for template in reversed(templates) for image in _images(template))),
        accelerator=next((found for template in templates if (found := _accelerator(template, names))), ""),
        queue=job.labels.get(QUEUE_NAME, ""),
    )


def _images(template: PodTemplate) -> tuple[str, ...]:
    containers = (*template.init_containers, *template.containers)
    volumes = (volume.image.reference for volume in (template.spec and template.spec.volumes) or () if volume.image)
    return tuple(filter(None, (*(container.image for container in containers), *volumes)))


def _accelerator(template: PodTemplate, names: tuple[str, ...]) -> str:
    for _, container in asking_for_devices(template):
        if (asked := container.resources) is not None:
            found = (name for name in (*(asked.limits or ()), *(asked.requests or ())) if is_accelerator(name, names))
            if name := next(found, ""):
                return name
    return ""
