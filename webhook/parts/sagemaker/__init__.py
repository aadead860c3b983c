"""The command `convert sagemaker`: converts training jobs of Amazon SageMaker to MPIJobs.

`job.convert` converts a request for CreateTrainingJob, or a description from DescribeTrainingJob. `request` decodes the
input. `machines` computes the pods that replace the machines, `distribution` the processes that SageMaker would have
started, `program` the command line and the environment, and `storage` the volumes. Finally `job` reports every field
that the other modules have not reported.
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(conversions={"sagemaker": "webhook.parts.sagemaker.command:sagemaker"})
