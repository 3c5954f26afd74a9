/** The progress of a migration: in sentences, and followed until it no longer runs. */
import { Fault } from '../../../errors/fault.ts'
import type { MigrationItem } from '../../../wire/migrations/migrations.ts'
import type { Context } from '../../contexts.ts'
import { explained } from '../../explanations.ts'
import { pause } from '../../pauses.ts'

const POLL_MILLIS = 1_000

/** Sentences after an action. */
export function startedLines(item: MigrationItem): string[] {
  const { name, state } = item
  if (state !== 'running') return finalLines(item)
  return [`${name} is running. Follow it with \`svc migrations status ${name} --follow\`.`]
}

/** Sentences about the state of a migration and what to do next. */
export function finalLines(item: MigrationItem): string[] {
  const { name, state, lastDocumentId } = item
  const first = `${name} is ${state}: ${countsOf(item)}.`
  if (state === 'blocked') {
    const where = lastDocumentId === null ? '' : ` at ${lastDocumentId}`
    const log = 'The log has the reason: `svc logs --level warn`.'
    const reason = `${item.lastErrorCode}${where}. ${log}`
    const resume = `\`svc migrations resume ${name}\``
    return [first, reason, `Correct the document and run ${resume}, or publish corrected code.`]
  }
  if (state === 'paused') return [first, `Continue it with \`svc migrations resume ${name}\`.`]
  if (state === 'pending') return [first, `Run it with \`svc migrations run ${name}\`.`]
  return [first]
}

/**
 * Shows the progress until the migration no longer runs: on a terminal in one line, elsewhere and
 * with --json a line for each change. Throws PRODUCT_STATE_CONFLICT unless it is complete then.
 */
export async function followMigration(
  { output, signal, environment }: Context,
  read: () => Promise<MigrationItem>,
): Promise<void> {
  let item = await read()
  let rate = 0
  const isTerminal = environment.stderr.isTTY && !output.json
  let printed = ''
  const print = async () => {
    const text = `${item.state} ${countsOf(item)}`
    if (text !== printed)
      await output.line(item, `${item.name} is ${item.state}: ${countsOf(item)}.`)
    printed = text
  }
  const follow = async () => {
    while (item.state === 'running') {
      if (!isTerminal) await print()
      const { processed } = item
      const startedMillis = environment.system.monotonicMillis()
      await pause(POLL_MILLIS, signal)
      item = await read()
      const seconds = (environment.system.monotonicMillis() - startedMillis) / 1_000
      rate = Number(BigInt(item.processed) - BigInt(processed)) / seconds
    }
  }
  await output.progress(() => `${item.name}: ${countsOf(item)}, ${grouped(rate)}/s`, follow())
  if (output.json) await print()
  else await output.result(item, finalLines(item))
  if (item.state === 'complete') return
  const next = `Look at it with \`svc migrations status ${item.name}\`.`
  const fault = new Fault('PRODUCT_STATE_CONFLICT', { detail: `${item.name} is ${item.state}.` })
  throw explained(fault, { next })
}

function countsOf({ processed, changed }: MigrationItem): string {
  const documents = processed === '1' ? 'document' : 'documents'
  return `${grouped(Number(processed))} ${documents}, ${grouped(Number(changed))} changed`
}

function grouped(count: number): string {
  return Math.round(count).toLocaleString('en-US')
}
