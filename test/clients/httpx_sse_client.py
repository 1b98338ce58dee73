"""Reads an event stream with httpx-sse and prints each event as JSON: httpx_sse_client.py URL"""
import json
import sys

import httpx
from httpx_sse import connect_sse

with httpx.Client(timeout=60) as client, connect_sse(client, "GET", sys.argv[1]) as source:
    for event in source.iter_sse():
        print(json.dumps({"event": event.event, "data": event.data, "id": event.id}), flush=True)
