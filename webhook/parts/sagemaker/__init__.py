"""The command `convert sagemaker`: training jobs of Amazon SageMaker, made into MPIJobs.

`job.convert` is the way in: a request for CreateTrainingJob, or what DescribeTrainingJob says of one. `request` reads
it, `machines` knows what its machines have and the pods that they become, `distribution` which processes
SageMaker would have started, `program` their command line and what they find in their environment, `storage`
where their data is. `job` then reports every field that none of them has reported.
"""

from typing import Final

from webhook.kit.parts import Part

PART: Final = Part(conversions={"sagemaker": "webhook.parts.sagemaker.command:sagemaker"})
