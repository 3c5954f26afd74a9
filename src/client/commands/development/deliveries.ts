/** Shows what became of a delivery: the answer, and the end of the handler as the log has it. */

import { STATUS_CODES } from 'node:http'
import { Fault } from '../../../errors/fault.ts'
import { LOCAL_MOUNT } from '../../../value/http/mounts.ts'
import type { HookManifest } from '../../../value/http/routes.ts'
import { type Id, idMillis, isId } from '../../../value/ids.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import { type Json, parseStrictJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { LocalServer } from '../../../wire/files/local-server.ts'
import type { LogLine, LogRecord } from '../../../wire/logs.ts'
import { listLogs } from '../../../wire/operations/logs.ts'
import type { Context } from '../../contexts.ts'
import type { WorkspaceTools } from '../../development/workspace-tools.ts'
import { explanation } from '../../explanations.ts'
import { type BytesReply, LAST_LINE } from '../../requests/requests.ts'
import type { Remote } from '../../roots/remotes.ts'
import { printableLines } from '../../visible-text.ts'
import { readLog } from '../logs/follow.ts'

type DeliveryId = Id<'sch'>

export interface SentDelivery {
  readonly tools: WorkspaceTools
  readonly remote: Remote
  readonly local: LocalServer
  readonly hook: HookManifest
  readonly reply: BytesReply
  /** Null for an answer that does not name it. */
  readonly deliveryId: DeliveryId | null
  /** Unix milliseconds before the request. */
  readonly sentAt: number
}

/** The records of the log about the work of a delivery. */
interface Ended {
  /** The record of the end; null if the log has none. */
  readonly run: LogRecord | null
  /** The record of what the handler threw last. */
  readonly failure: LogRecord | null
}

/** Returns the ID in the body of the answer; null if it has none. */
export function deliveryIdOf({ bytes }: Pick<BytesReply, 'bytes'>): DeliveryId | null {
  try {
    const body = parseStrictJson(bytes) as { readonly deliveryId?: Json } | null
    const id = body?.deliveryId
    return typeof id === 'string' && isId('sch', id) ? id : null
  } catch (error) {
    if (error instanceof ValidationError) return null
    throw error
  }
}

/** Waits for the end and prints it. Throws FUNCTION_FAILED for a handler that failed. */
export async function reportDelivery(context: Context, sent: SentDelivery): Promise<void> {
  const { hook, reply, deliveryId, sentAt } = sent
  const { output } = context
  // The ID has the time at which the event came first.
  const isRepeat = deliveryId !== null && idMillis(deliveryId) < sentAt
  const ended = deliveryId === null ? null : await endOf(context, sent, { deliveryId, isRepeat })
  const answer = `${reply.status} ${STATUS_CODES[reply.status] ?? ''}`.trim()
  const named = deliveryId === null ? answer : `${answer}  ${deliveryId}`
  const repeated = isRepeat ? '  The event was sent before, and is not handled again.' : ''
  if (deliveryId !== null && ended?.run?.event === 'schedule.failed') {
    throw await failed({ ...sent, deliveryId }, ended, named + repeated)
  }
  const durationMillis = millisOf(ended?.run ?? null)
  const document = {
    version: 1,
    hook: hook.name,
    status: reply.status,
    deliveryId,
    isRepeat,
    function: hook.function,
    outcome: durationMillis === null ? null : 'ok',
    durationMillis,
  }
  const end =
    durationMillis === null
      ? 'has not ended, or its end is no longer in the log'
      : `ok  ${durationMillis.toFixed(1)} ms`
  await output.result(document, [named + repeated, `${hook.function}  ${end}`])
}

function millisOf(run: LogRecord | null): number | null {
  return run === null ? null : Number(run.durationMicros ?? 0) / 1_000
}

/** Reads the log from the first delivery of the event on. Waits for the end of new work. */
async function endOf(
  { output }: Context,
  { remote, hook }: SentDelivery,
  { deliveryId, isRepeat }: { readonly deliveryId: DeliveryId; readonly isRepeat: boolean },
): Promise<Ended> {
  let ended: Ended = { run: null, failure: null }
  const add = (record: LogRecord): boolean => {
    if (record.scheduledId !== deliveryId) return false
    if (record.event === 'function.failed') ended = { ...ended, failure: record }
    const isRun = record.event === 'schedule.ran' || record.event === 'schedule.failed'
    if (!isRun || record.outcome === 'postponed' || record.outcome === 'transient') return false
    ended = { ...ended, run: record }
    return true
  }
  const since = String(idMillis(deliveryId) * 1_000)
  if (!isRepeat) {
    const onLine = async (line: LogLine) =>
      !('heartbeat' in line) && add(line) ? LAST_LINE : undefined
    await output.progress(`waiting for ${hook.function}`, readLog(remote, { since }, onLine))
    return ended
  }
  let after: string | undefined
  do {
    const query = { since, after, limit: '1000' }
    const page = await output.progress('reading the log', remote.call(listLogs, { query }))
    for (const record of page.items) add(record)
    after = page.next ?? undefined
  } while (after !== undefined)
  return ended
}

async function failed(
  { tools, remote, local, hook, deliveryId }: SentDelivery & { readonly deliveryId: DeliveryId },
  { run, failure }: Ended,
  answer: string,
): Promise<Fault> {
  const event = failure === null ? null : await tools.failureOf(failure, local.workspaceDirectory)
  const reason = event === null ? [] : [event.message, ...event.trace, ...event.codeFrame]
  const lines = [answer, `${hook.function}  ${run?.errorCode ?? 'failed'}`, ...reason]
  const root = shellQuoted(remote.directory)
  const replay = `svc http replay ${LOCAL_MOUNT} ${deliveryId} --root ${root}`
  const next =
    `Fix the code and save it. Then run \`${replay}\`: the event is stored, ` +
    'and a repeat of it is not handled again.'
  return new Fault('FUNCTION_FAILED', {
    detail: printableLines(`\n${lines.join('\n')}`),
    cause: explanation({ next }),
  })
}
