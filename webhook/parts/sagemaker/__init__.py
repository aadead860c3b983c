"""The command `convert sagemaker`: converts training jobs of Amazon SageMaker to MPIJobs.

`job.convert` converts a request for CreateTrainingJob, or a description from DescribeTrainingJob. `request` reads it,
`machines` describes its machines and the pods that replace them, `distribution` the processes that SageMaker would have
started, `program` their command line and environment, and `storage` their data. `job` then reports every field that
none of them has reported.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(conversions={"sagemaker": "webhook.parts.sagemaker.command:sagemaker"})
