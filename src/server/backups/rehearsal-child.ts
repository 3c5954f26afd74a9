/** Starts the process that rehearses a restore, and reads how it ended. */
import { rmSync } from 'node:fs'
import type { RehearsedBackup } from '../../backups/rehearsal/rehearsals.ts'
import { CODES, type TableCode } from '../../errors/codes.ts'
import { Fault } from '../../errors/fault.ts'
import { ownCommand } from '../../runner/command.ts'
import { RUNNER_ENVIRONMENT } from '../../runner/sandbox/process-environment.ts'
import {
  REHEARSAL_ARGUMENT,
  type RehearsalReply,
  type RehearsalRequest,
} from './rehearsal-request.ts'

const REPLY_CHARACTERS_MAX = 64 * 1024

/**
 * Removes what an earlier process left in the directory, and what this one leaves. Rejects with the
 * fault of the rehearsal, with UNAVAILABLE where the process ends without a reply, and with the
 * reason of the signal.
 */
export async function rehearseInChild(
  request: RehearsalRequest,
  signal: AbortSignal,
): Promise<RehearsedBackup> {
  const { directory } = request
  const remove = () => rmSync(directory, { recursive: true, force: true })
  remove()
  const child = Bun.spawn(ownCommand(REHEARSAL_ARGUMENT), {
    env: RUNNER_ENVIRONMENT,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const kill = () => child.kill('SIGKILL')
  signal.addEventListener('abort', kill)
  try {
    child.stdin.write(`${JSON.stringify(request)}\n`)
    await child.stdin.flush()
    const text = (await new Response(child.stdout).text()).slice(0, REPLY_CHARACTERS_MAX)
    const code = await child.exited
    signal.throwIfAborted()
    if (!text.endsWith('\n')) {
      const ended = child.signalCode ?? `exit code ${code}`
      throw new Fault('UNAVAILABLE', { detail: `the process of the rehearsal ended: ${ended}` })
    }
    return rehearsedOf(JSON.parse(text) as RehearsalReply)
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
    await child.exited
    remove()
  }
}

function rehearsedOf(reply: RehearsalReply): RehearsedBackup {
  if ('rehearsed' in reply) return reply.rehearsed
  const { code, detail } = reply
  const known: TableCode = Object.hasOwn(CODES, code) ? (code as TableCode) : 'INTERNAL'
  throw new Fault(known, { detail: detail ?? undefined })
}
