"""The command `convert sagemaker`: converts training jobs of Amazon SageMaker to MPIJobs.

`job.convert` converts a request for CreateTrainingJob, or a description from DescribeTrainingJob. The other modules
compute the pods (`machines`), the processes (`distribution`), the command line (`program`) and the volumes (`storage`).
"""

from typing import Final

from webhook.kit.optional_parts import Part

PART: Final = Part(conversions={"sagemaker": "webhook.parts.sagemaker.command:sagemaker"})
