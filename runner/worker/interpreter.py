"""Which interpreter a process came from: children of one forkserver share it, with its hash seed and addresses."""

import uuid

# Drawn once, when this module is imported: in the forkserver before it forks, in a spawned child by itself.
IDENTITY = uuid.uuid4().hex[:12]
