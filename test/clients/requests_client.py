"""Reads an event stream as users of requests do, by its lines, and prints each event as JSON: requests_client.py URL"""
import json
import sys

import requests

response = requests.get(sys.argv[1], stream=True, headers={"Accept": "text/event-stream"}, timeout=60)
response.raise_for_status()
fields: dict[str, str] = {}
for line in response.iter_lines():
    text = line.decode("utf-8")
    if text == "":
        if fields:
            print(json.dumps({"event": fields.get("event", "message"), "data": fields.get("data", ""), "id": fields.get("id", "")}), flush=True)
        fields = {}
    elif not text.startswith(":"):
        name, _, value = text.partition(": ")
        if name != "retry":
            fields[name] = value
