"""Anthropic messages."""
import json
from model.server import events, text_of


def is_chat(path, body):
    return "messages" in body and "count_tokens" not in path


def talk(body):
    items = []
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        for part in parts:
            if part["type"] == "tool_result":
                items.append(("result", text_of(part.get("content"))))
            elif message["role"] == "user" and part["type"] == "text":
                items.append(("user", part["text"]))
    return items


def tools(body):
    return [tool.get("name") for tool in body.get("tools") or []]


def answer(body, call, n):
    message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    if call:
        block, delta = {"type": "tool_use", "id": f"toolu_{n}", "name": call[0], "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        whole, stop = {**block, "input": call[1]}, "tool_use"
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
        whole, stop = {"type": "text", "text": "done"}, "end_turn"
    if not body.get("stream"):
        return "application/json", json.dumps({**message, "content": [whole], "stop_reason": stop})
    items = [
        ("message_start", {"message": {**message, "content": []}}),
        ("content_block_start", {"index": 0, "content_block": block}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 3}}),
        ("message_stop", {}),
    ]
    return events((name, {"type": name, **data}) for name, data in items)
