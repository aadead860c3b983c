"""Volumes for the channels, program, model and checkpoints of a training job."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from webhook.api.names import DNS_LABEL_MAX_LENGTH
from webhook.api.placeholders import MARK, fill_in
from webhook.converters.report import ConversionError, Report
from webhook.parts.sagemaker import distribution, program
from webhook.parts.sagemaker.machines import Options
from webhook.parts.sagemaker.request import Channel, TrainingJob

CODE: Final = "code"
MODEL: Final = "model"
CHECKPOINTS: Final = "checkpoints"
_S3: Final = "s3://"
_PREFIX: Final = "S3Prefix"
_FETCH: Final = "fetch-"
_LONGEST_NAME: Final = DNS_LABEL_MAX_LENGTH - len(_FETCH)
# Resources of an init container. Quotas may require them.
_SMALL: Final = {"cpu": "1", "memory": "2Gi"}


@dataclass(slots=True)
class Storage:
    """The volumes, mounts and init containers of pods that run ranks."""

    options: Options
    size: int | None
    """Limit for fetched data in GB."""
    volumes: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    fetching: list[dict[str, Any]] = field(default_factory=list)
    """Init containers that fetch data."""

    def claim(self, name: str, claim: str, *paths: tuple[str, str], read_only: bool = False) -> None:
        """`claim` may be `NAME/FOLDER`. `paths` are pairs of a mount path and a folder below FOLDER."""
        is_open = claim.startswith(MARK)
        claim_name, _, folder = (claim, "", "") if is_open else claim.partition("/")
        self.volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim_name}})
        for path, below in paths:
            mount: dict[str, Any] = {"name": name, "mountPath": path}
            if sub_path := "/".join(filter(None, (folder.strip("/"), below))):
                mount["subPath"] = sub_path
            if read_only:
                mount["readOnly"] = True
            self.mounts.append(mount)

    def fetch(self, name: str, path: str, command: list[str]) -> None:
        self.volumes.append({"name": name, "emptyDir": {"sizeLimit": f"{self.size}Gi"} if self.size else {}})
        mount = {"name": name, "mountPath": path}
        self.mounts.append(mount)
        container: dict[str, Any] = {"name": f"{_FETCH}{name}", "image": self.options.s3_image}
        container["command"] = [program.literal(word) for word in command]
        if self.options.s3_secret:
            container["envFrom"] = [{"secretRef": {"name": self.options.s3_secret}}]
        container["resources"] = {"requests": dict(_SMALL), "limits": dict(_SMALL)}
        self.fetching.append(container | {"volumeMounts": [dict(mount)]})


def storage(request: TrainingJob, options: Options, report: Report) -> Storage:
    """The storage of a job; ConversionError if the options have a claim for a channel that does not exist."""
    size = request.resource_config.volume_size
    result, claims = Storage(options, size), dict(options.claims)
    channels = request.input_data_config or ()
    for number, channel in enumerate(channels):
        _channel(result, channel, f"InputDataConfig[{number}]", claims, report)
    _code(result, request, claims.pop(CODE, None), report)
    _model(result, request, claims.pop(MODEL, None), report)
    _checkpoints(result, request, claims.pop(CHECKPOINTS, None), report)
    if claims:
        names = ", ".join([*(channel.channel_name for channel in channels), CODE, MODEL, CHECKPOINTS])
        raise ConversionError(
            "InputDataConfig", f'has no channel "{next(iter(claims))[:60]}" for --claim (the channels are: {names})'
        )
    if size:
        report.changed(
            "ResourceConfig.VolumeSizeInGB",
            "limits the data of init containers"
            if result.fetching
            else "has no counterpart: claims have their own size",
        )
    return result


def _channel(storage: Storage, channel: Channel, where: str, claims: dict[str, str], report: Report) -> None:
    name, path = channel.channel_name, f"{program.DATA}/{channel.channel_name}"
    volume = _volume_name(f"channel-{name}", {existing["name"] for existing in storage.volumes})
    s3, folder = channel.data_source.s3, channel.data_source.file_system
    report.mapped(f"{where}.ChannelName", f"is {path} on the workers, and SM_CHANNEL_{name.upper()}")
    source = _source(channel)
    field_name = f"{where}.DataSource"
    field_name += ".S3DataSource.S3Uri" if s3 else ".FileSystemDataSource" if folder else ""
    claim = claims.pop(name, None)
    can_be_fetched = s3 is not None and s3.s3_uri.startswith(_S3) and s3.s3_data_type == _PREFIX
    if claim is None and s3 and can_be_fetched and storage.options.s3_image:
        report.mapped(field_name, "is fetched by an init container of each worker")
        storage.fetch(volume, path, ["aws", "s3", "cp", "--recursive", "--no-progress", s3.s3_uri, path])
    else:
        report.changed(field_name, f"is a claim now: copy the data there{source}")
        claim = claim or fill_in(f"the claim with the data of channel {name}{source}")
        read_only = folder is None or folder.file_system_access_mode != "rw"
        storage.claim(volume, claim, (path, ""), read_only=read_only)
    _modes(channel, where, report)


def _source(channel: Channel) -> str:
    if s3 := channel.data_source.s3:
        return f" ({s3.s3_uri})"
    if folder := channel.data_source.file_system:
        return f" ({folder.file_system_type} {folder.file_system_id}:{folder.directory_path})"
    return ""


def _modes(channel: Channel, where: str, report: Report) -> None:
    s3 = channel.data_source.s3
    if s3 and s3.s3_data_distribution_type != "FullyReplicated":
        report.changed(
            f"{where}.DataSource.S3DataSource.S3DataDistributionType",
            f"was {s3.s3_data_distribution_type[:40]}; every worker gets all data now: ranks must choose a part",
        )
    if s3 and s3.s3_data_type != _PREFIX:
        report.to_do(
            f"{where}.DataSource.S3DataSource.S3DataType",
            f"is {s3.s3_data_type[:40]}: copy the listed objects, since a copy of the prefix differs from the list",
        )
    if channel.compression_type not in {None, "None"}:
        report.to_do(f"{where}.CompressionType", "decompress the data: SageMaker decompressed them")
    if channel.input_mode not in {None, "File"}:
        report.changed(f"{where}.InputMode", f"was {channel.input_mode}; the data are files now")


def _code(storage: Storage, request: TrainingJob, claim: str | None, report: Report) -> None:
    location = distribution.value((request.hyper_parameters or {}).get(distribution.SUBMIT_DIRECTORY, ""))
    archive = location if isinstance(location, str) else ""
    where = distribution.field(distribution.SUBMIT_DIRECTORY)
    if not program.entry_point(request) and not claim:
        return
    if storage.options.code_in_image or not (claim or archive):
        report.to_do(where, f"the image needs the program in {program.CODE}, where SageMaker's toolkit looks for it")
    elif claim is None and storage.options.s3_image and archive.startswith(_S3):
        report.mapped(where, "is fetched and unpacked by an init container of each worker")
        unpack = f'aws s3 cp --no-progress "$0" - | tar -xz -C {program.CODE}'
        storage.fetch(CODE, program.CODE, ["/bin/sh", "-c", unpack, archive])
    else:
        report.changed(where, f"is a claim at {program.CODE} now: unpack the program there")
        claim = claim or fill_in(f"the claim with the program, unpacked ({archive}), or use --code-in-image")
        storage.claim(CODE, claim, (program.CODE, ""), read_only=True)


def _model(storage: Storage, request: TrainingJob, claim: str | None, report: Report) -> None:
    output = request.output_data_config
    target = output.s3_output_path if output else ""
    report.changed(
        "OutputDataConfig.S3OutputPath",
        f"is a claim with {program.MODEL} and {program.OUTPUT} now: no data are uploaded at the end",
    )
    shown = f" ({target})" if target else ""
    claim = claim or fill_in(f"the claim for the model and output{shown}")
    storage.claim(MODEL, claim, (program.MODEL, "model"), (program.OUTPUT, "output"))


def _checkpoints(storage: Storage, request: TrainingJob, claim: str | None, report: Report) -> None:
    checkpoints = request.checkpoint_config
    if checkpoints is None:
        if claim is not None:
            storage.claim(CHECKPOINTS, claim, ("/opt/ml/checkpoints", ""))
        return
    report.changed(
        "CheckpointConfig",
        f"is a claim at {checkpoints.local_path} now: copy the content of {checkpoints.s3_uri}",
    )
    claim = claim or fill_in(f"the claim for checkpoints ({checkpoints.s3_uri})")
    storage.claim(CHECKPOINTS, claim, (checkpoints.local_path, ""))


def _volume_name(text: str, taken: Collection[str]) -> str:
    """A valid volume name that is not in `taken`. A number is appended if `taken` has the name without a number."""
    stem = re.sub(r"[^a-z0-9-]", "-", text.lower())
    for number in count(1):
        end = f"-{number}" if number > 1 else ""
        name = stem[: _LONGEST_NAME - len(end)].rstrip("-") + end
        if name not in taken:
            break
    return name
