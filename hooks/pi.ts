// Written by `piton install pi`, and taken away by `piton uninstall pi`.
//
// Tells piton what pi is about to do, and waits for the answer. After any error here, pi continues: only an answer that says
// no stops a tool. (A handler that throws would stop every one.)

import { spawn } from "node:child_process"

const PITON = "@PITON@"
const NOTE = "@NOTE@"
const PATIENCE_MS = 10_000
const ANSWER_MS = 60_000

function ask(payload: any, patience: number): Promise<any> {
  return new Promise((resolve) => {
    let child: any
    let text = ""
    const end = (reply: any) => {
      clearTimeout(timer)
      resolve(reply)
    }
    const timer = setTimeout(() => {
      child?.kill()
      end({})
    }, patience)
    try {
      child = spawn(PITON, ["hook", "pi", payload.type], { stdio: ["pipe", "pipe", "ignore"], cwd: payload.cwd })
      child.on("error", () => {
        // piton could not be started: its next process reports the action.
        if (payload.type === "tool_call") {
          spawn("/bin/sh", ["-c", NOTE], { stdio: "ignore", cwd: payload.cwd }).on("error", () => {})
        }
        end({})
      })
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (part: string) => (text += part))
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

export default function (pi: any) {
  const tell = (ctx: any, message: string) => {
    try {
      ctx?.ui?.notify?.(message, "info")
    } catch {
      // Without a screen there is nobody to tell.
    }
  }
  const send = async (type: string, ctx: any, more: any = {}, patience = PATIENCE_MS) => {
    let session: string | undefined
    try {
      session = ctx?.sessionManager?.getSessionId?.()
    } catch {
      // A session that has no id is known by its directory.
    }
    const reply = await ask({ type, session, cwd: ctx?.cwd ?? process.cwd(), ...more }, patience)
    if (reply.message) tell(ctx, reply.message)
    return reply
  }

  // A line that the person types after `!`. pi reports no end of it, so it ends with the next event before which it may have ended.
  let line = 0
  let isLineOpen = false
  const endLine = async (ctx: any) => {
    if (!isLineOpen) return
    isLineOpen = false
    await send("user_bash_end", ctx, { line })
  }
  pi.on("user_bash", async (event: any, ctx: any) => {
    await endLine(ctx)
    line += 1
    const { command, cwd } = event
    const reply = await send("user_bash", ctx, cwd ? { command, line, cwd } : { command, line })
    isLineOpen = reply.end === true
    if (reply.deny) return { result: { output: reply.deny, exitCode: 126, cancelled: false, truncated: false } }
  })

  for (const type of ["session_start", "agent_end", "session_shutdown"]) {
    pi.on(type, async (_event: any, ctx: any) => {
      if (type === "session_shutdown") await endLine(ctx)
      await send(type, ctx)
    })
  }
  pi.on("before_agent_start", async (event: any, ctx: any) => {
    await endLine(ctx)
    const reply = await send("before_agent_start", ctx, { prompt: event.prompt })
    if (reply.context) return { message: { customType: "piton", content: reply.context, display: true } }
  })
  pi.on("tool_call", async (event: any, ctx: any) => {
    await endLine(ctx)
    const { toolCallId, toolName, input } = event
    const reply = await send("tool_call", ctx, { toolCallId, toolName, input })
    if (reply.deny) return { block: true, reason: reply.deny }
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    const { toolCallId, toolName, isError } = event
    const reply = await send("tool_result", ctx, { toolCallId, toolName, isError })
    if (reply.context) return { content: [...(event.content ?? []), { type: "text", text: reply.context }] }
  })
  for (const name of ["rollback", "undo"]) {
    pi.registerCommand?.(name, {
      description: name === "undo" ? "Undo the last rollback of piton" : "Bring files back to a checkpoint of piton",
      handler: async (args: string, ctx: any) => {
        const reply = await send("input", ctx, { text: `/${name} ${args ?? ""}`.trim() }, ANSWER_MS)
        tell(ctx, reply.answer ?? "piton did not answer: run `piton list` and `piton restore` in a terminal")
      },
    })
  }
}
