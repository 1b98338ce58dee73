"""Makes runs on a ZenML server and prints their ids and a token as one JSON line: seed_runs.py URL COUNT"""
import json
import os
import sys
import tempfile
import uuid

url, count = sys.argv[1], int(sys.argv[2])
folder = tempfile.TemporaryDirectory(prefix="penstock-zenml-", ignore_cleanup_errors=True)
os.environ["ZENML_CONFIG_PATH"] = folder.name
os.environ.update(
    ZENML_STORE_URL=url,
    ZENML_STORE_USERNAME="default",
    ZENML_STORE_PASSWORD="zenml",
    ZENML_ANALYTICS_OPT_IN="false",
    ZENML_LOGGING_VERBOSITY="ERROR",
)

from zenml import pipeline, step  # noqa: E402
from zenml.client import Client  # noqa: E402
from zenml.enums import ExecutionStatus  # noqa: E402
from zenml.models import PipelineRunUpdate  # noqa: E402
from zenml.pipelines.run_utils import create_placeholder_run  # noqa: E402

store = Client().zen_store
token = store.get_or_generate_api_token()


@step(enable_cache=False)
def noop() -> int:
    return 1


@pipeline(name="streamed", dynamic=True)
def streamed():
    noop()


snapshot = streamed.create_snapshot(name=f"seed-{uuid.uuid4().hex[:8]}")
runs = []
for _ in range(count):
    run = create_placeholder_run(snapshot, orchestrator_run_id=uuid.uuid4().hex)
    store.update_run(run.id, PipelineRunUpdate(status=ExecutionStatus("running")))
    runs.append(str(run.id))
print(json.dumps({"runs": runs, "token": token}), flush=True)
