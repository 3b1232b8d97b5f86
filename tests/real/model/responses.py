"""OpenAI responses."""
import json
from model.server import events, text_of


def is_chat(path, body):
    return "input" in body and "responses" in path


def talk(body):
    items = []
    for item in [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]:
        if item.get("type", "").endswith("_output"):
            items.append(("result", text_of(item.get("output"))))
        elif item.get("role") == "user" or item.get("type") == "agent_message":
            items.append(("user", text_of(item.get("content"))))
    return items


def tools(body):
    return [tool.get("name") or tool.get("type") for tool in body.get("tools") or []]


def answer(body, calls, n):
    made = []
    for i, (called, words) in enumerate(calls):
        space, _, name = called.rpartition(".")
        made.append({"type": "function_call", "id": f"fc_{n}_{i}", "call_id": f"call_{n}_{i}", "name": name, "arguments": json.dumps(words), "status": "completed"})
        if space:
            made[-1]["namespace"] = space
    if not calls:
        part = {"type": "output_text", "text": "done", "annotations": []}
        made.append({"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": [part]})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": f"resp_{n}", "object": "response", "created_at": 1, "model": body.get("model", "x"), "status": "in_progress", "output": []}
    whole = {**response, "status": "completed", "output": made, "usage": usage}
    if not body.get("stream"):
        return "application/json", json.dumps(whole)
    items = [("response.created", {"response": response})]
    for index, item in enumerate(made):
        items.append(("response.output_item.added", {"output_index": index, "item": item}))
        if not calls:
            items.append(("response.output_text.delta", {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": "done"}))
        items.append(("response.output_item.done", {"output_index": index, "item": item}))
    items.append(("response.completed", {"response": whole}))
    return events((name, {"type": name, "sequence_number": n, **data}) for n, (name, data) in enumerate(items))
