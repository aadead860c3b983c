"""The forms of values in a pod template that types hold by themselves: choices, ranges, texts that are not empty.

Each is what the API server takes after its own defaults, so an empty text is among the choices where it means the
default. https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

NonEmpty = Annotated[str, Meta(min_length=1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NotNegative = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
LongPositive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Percentage = Annotated[int, Meta(ge=1, le=100)]
Byte = Annotated[int, Meta(ge=0, le=255)]
MOST_OF_A_MODE: Final = 0o777
FileMode = Annotated[int, Meta(ge=0, le=MOST_OF_A_MODE)]
PortNumber = Annotated[int, Meta(ge=1, le=65535)]
HostPort = Annotated[int, Meta(ge=0, le=65535)]
PortReference = PortNumber | str
"""A number, or the name of a port."""
UserId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Amount = Annotated[int | str | None, Meta(extra={"read": "webhook.api.quantity"})]
"""A quantity, or what stands where one belongs."""
Strings = dict[str, str | None]

PullPolicy = Literal["", "Always", "IfNotPresent", "Never"]
NodeOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
FieldOperator = Literal["In", "NotIn"]
SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Inclusion = Literal["Honor", "Ignore"]
