"""Gemini generateContent."""
import json
from model.server import events, text_of


def is_chat(path, body):
    return "contents" in body and "countTokens" not in path


def talk(body):
    items = []
    for content in body["contents"]:
        for part in content.get("parts") or []:
            if "functionResponse" in part:
                items.append(("result", text_of(part["functionResponse"].get("response"))))
            elif content.get("role", "user") == "user" and "text" in part:
                items.append(("user", part["text"]))
    return items


def tools(body):
    return [function.get("name") for tool in body.get("tools") or [] for function in tool.get("functionDeclarations") or []]


def answer(body, calls, n):
    parts = [{"functionCall": {"name": name, "args": words}} for name, words in calls] or [{"text": "done"}]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return events([(None, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "x", "responseId": f"r{n}"})])
