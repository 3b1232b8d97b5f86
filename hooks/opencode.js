// Written by `piton install opencode`, and taken away by `piton uninstall opencode`.
//
// Tells piton what opencode is about to do, and waits for the answer. After any error here, opencode continues: only an
// answer that says no stops a tool.

import { spawn } from "node:child_process"

const PITON = "@PITON@"
const NOTE = "@NOTE@"
const PATIENCE_MS = 10_000
const ANSWER_MS = 60_000

function ask(event, payload, patience) {
  return new Promise((resolve) => {
    let child
    let text = ""
    const end = (reply) => {
      clearTimeout(timer)
      resolve(reply)
    }
    const timer = setTimeout(() => {
      child?.kill()
      end({})
    }, patience)
    try {
      const stdio = ["pipe", "pipe", "ignore"]
      child = spawn(PITON, ["hook", "opencode", event], { stdio, cwd: payload.directory })
      child.on("error", () => {
        // piton could not be started: its next process reports the action.
        if (event === "tool.execute.before") {
          spawn("/bin/sh", ["-c", NOTE], { stdio: "ignore", cwd: payload.directory }).on("error", () => {})
        }
        end({})
      })
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part) => (text += part))
      child.on("close", () => {
        try {
          end(text.trim() ? JSON.parse(text) : {})
        } catch {
          end({})
        }
      })
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end({})
    }
  })
}

export const Piton = async ({ directory, client }) => {
  const tell = async (message) => {
    try {
      await client?.tui?.showToast?.({ body: { title: "piton", message, variant: "info" } })
    } catch {
      // Without a screen there is nobody to tell.
    }
  }
  // A sub-agent has a session of its own: the sessions of sub-agents, each with that of the agent at the top.
  const tops = new Map()
  const send = async (hook, input, output, more, patience = PATIENCE_MS) => {
    const top = tops.get(input?.sessionID ?? input?.properties?.sessionID ?? input?.properties?.info?.id)
    const reply = await ask(hook, { hook, directory, ...more, top, input, output }, patience)
    if (reply.message) await tell(reply.message)
    return reply
  }
  const answered = async (reply) => {
    if (!reply.answer) return
    await tell(reply.answer)
    throw new Error(reply.answer)
  }
  return {
    event: async ({ event }) => {
      if (!["session.created", "session.deleted", "session.idle"].includes(event.type)) return
      const { id, parentID } = event.properties?.info ?? {}
      if (parentID) tops.set(id, tops.get(parentID) ?? parentID)
      await send(`event.${event.type}`, event)
      if (event.type === "session.deleted") tops.delete(id)
    },
    "command.execute.before": async (input) => {
      if (input.command !== "rollback") return
      const prompt = `/rollback ${input.arguments ?? ""}`
      await answered(await send("command.execute.before", input, undefined, { prompt }, ANSWER_MS))
    },
    "chat.message": async (input, output) => {
      const texts = output.parts.filter((part) => part.type === "text")
      const prompt = texts.map((part) => part.text).join("\n")
      const reply = await send("chat.message", input, { message: output.message }, { prompt }, ANSWER_MS)
      await answered(reply)
      if (reply.context && texts.length) texts[texts.length - 1].text += `\n\n${reply.context}`
    },
    "shell.env": async (input, output) => {
      const reply = await send("shell.env", input, undefined, input.cwd ? { directory: input.cwd } : {})
      if (reply.env && output?.env) Object.assign(output.env, reply.env)
    },
    "tool.execute.before": async (input, output) => {
      const reply = await send("tool.execute.before", input, output)
      if (reply.deny) throw new Error(reply.deny)
    },
    "tool.execute.after": async (input, output) => {
      const told = { metadata: { exit: output?.metadata?.exit } }
      const reply = await send("tool.execute.after", input, told)
      if (reply.context && typeof output?.output === "string") output.output += `\n\n${reply.context}`
    },
  }
}
