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


def answer(body, calls, n):
    message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}
    made = [({"type": "tool_use", "id": f"toolu_{n}_{i}", "name": name, "input": {}}, {"input": words},
             {"type": "input_json_delta", "partial_json": json.dumps(words)}) for i, (name, words) in enumerate(calls)]
    made = made or [({"type": "text", "text": ""}, {"text": "done"}, {"type": "text_delta", "text": "done"})]
    stop = "tool_use" if calls else "end_turn"
    if not body.get("stream"):
        return "application/json", json.dumps({**message, "content": [{**block, **whole} for block, whole, _ in made], "stop_reason": stop})
    items = [("message_start", {"message": {**message, "content": []}})]
    for index, (block, _, delta) in enumerate(made):
        items += [
            ("content_block_start", {"index": index, "content_block": block}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    items += [("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 3}}), ("message_stop", {})]
    return events((name, {"type": name, **data}) for name, data in items)
