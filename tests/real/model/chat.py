"""OpenAI chat completions."""
import json
from model.server import events, text_of


def is_chat(path, body):
    return "messages" in body


def talk(body):
    items = []
    for message in body["messages"]:
        if message["role"] == "tool":
            items.append(("result", text_of(message.get("content"))))
        elif message["role"] == "user":
            items.append(("user", text_of(message.get("content"))))
    return items


def tools(body):
    return [tool.get("function", {}).get("name") for tool in body.get("tools") or []]


def answer(body, calls, n):
    message = {"role": "assistant", "content": None if calls else "done"}
    if calls:
        message["tool_calls"] = [{"index": i, "id": f"call_{n}_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(words)}}
                                 for i, (name, words) in enumerate(calls)]
    stop = "tool_calls" if calls else "stop"
    frame = {"id": f"chat_{n}", "created": 1, "model": body.get("model", "x")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return "application/json", json.dumps({**frame, "object": "chat.completion", "choices": [choice], "usage": usage})
    frame["object"] = "chat.completion.chunk"
    return events([
        (None, {**frame, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        (None, {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}),
        (None, {**frame, "choices": [], "usage": usage}),
        (None, "[DONE]"),
    ])
