"""Reads an event stream with sseclient-py over requests and prints each event as JSON: sseclient_py_client.py URL"""
import json
import sys

import requests
import sseclient

response = requests.get(sys.argv[1], stream=True, headers={"Accept": "text/event-stream"}, timeout=60)
response.raise_for_status()
for event in sseclient.SSEClient(response).events():
    print(json.dumps({"event": event.event, "data": event.data, "id": event.id or ""}), flush=True)
