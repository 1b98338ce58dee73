"""Drives ZenML's real stream publisher against any URL, without a ZenML server. Nothing of its HTTP, batching or retry code is replaced.

  drive_publisher.py --url URL --run-id UUID --n 500 --payload JSON [--token TOKEN] [--no-preauth] [--http-timeout S]

Event i carries the payload with `seq: i` behind it, and index i. Prints one JSON line with what the publisher says of itself.
"""
import argparse
import json
import os
import tempfile
import time
import uuid

folder = tempfile.TemporaryDirectory(prefix="penstock-zenml-", ignore_cleanup_errors=True)
os.environ["ZENML_CONFIG_PATH"] = folder.name
os.environ["ZENML_ANALYTICS_OPT_IN"] = "false"
os.environ["ZENML_DISABLE_CLIENT_SERVER_MISMATCH_WARNING"] = "true"

from zenml.login.credentials_store import get_credentials_store  # noqa: E402
from zenml.streaming import publishing  # noqa: E402
from zenml.zen_stores.rest_zen_store import RestZenStore, RestZenStoreConfiguration  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--run-id", type=uuid.UUID, required=True)
parser.add_argument("--n", type=int, default=10)
parser.add_argument("--payload", type=json.loads, default={})
parser.add_argument("--kind", default="token")
parser.add_argument("--correlation-id")
parser.add_argument("--step-name")
parser.add_argument("--step-run-id", type=uuid.UUID)
parser.add_argument("--token")
parser.add_argument("--no-preauth", action="store_true", help="send the token only after a 401, as a new session does")
parser.add_argument("--http-timeout", type=int, default=30)
arguments = parser.parse_args()

# Constructing the store does one unauthenticated GET of /api/v1/info.
store = RestZenStore(
    config=RestZenStoreConfiguration(url=arguments.url, http_timeout=arguments.http_timeout), skip_default_registrations=True
)
if arguments.token:
    get_credentials_store().set_bare_token(store.url, arguments.token)
    if not arguments.no_preauth:
        store.authenticate()

# The publisher is a singleton that finds its store and its run by itself inside a pipeline; here it is told.
publisher = publishing._StreamPublisher()
publisher._zen_store = store
context = publishing._PublishContext(arguments.run_id, arguments.step_run_id, arguments.step_name)
publishing._resolve_publish_context = lambda: context

started = time.monotonic()
for index in range(arguments.n):
    publishing.publish(
        dict(arguments.payload, seq=index), kind=arguments.kind, correlation_id=arguments.correlation_id, index=index
    )
flushed = publishing.flush(timeout=60)
print(
    json.dumps(
        {
            "sent": arguments.n,
            "flushed": flushed,
            "disabled": publisher._disabled,
            "seconds": round(time.monotonic() - started, 3),
        }
    ),
    flush=True,
)
