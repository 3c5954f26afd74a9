/** `svc scheduled`: work that is pending or has ended, and its cancellation. */
import { isId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import { cancelScheduled, listScheduled } from '../../../wire/operations/schedules.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { REMOTE } from '../operations.ts'

const list: CommandSpec = command({
  name: 'scheduled list',
  summary: 'List scheduled work that is pending or has ended within 7 days',
  options: {
    ...REMOTE,
    limit: option('COUNT', `Entries of the page, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('sch_ID', 'The `next` of the page before'),
  },
  examples: ['svc scheduled list'],
  async run(context, { limit = '100', after, ...at }) {
    if (!/^[1-9][0-9]{0,3}$/.test(limit) || Number(limit) > PAGE_MAX) {
      throw usage(`--limit is 1 to ${PAGE_MAX}.`, list)
    }
    if (after !== undefined) requireId(after, '--after', list)
    const remote = await openRemote(context, at)
    const request = remote.call(listScheduled, { query: { limit, after } })
    const page = await context.output.progress('reading the scheduled work', request)
    const rows = page.items.map((work) => [
      work.scheduledId,
      work.state,
      formatTimestamp(BigInt(work.dueAtMicros)),
      work.function,
      String(work.attempts),
      work.lastErrorCode ?? '-',
      work.source,
    ])
    const head = ['ID', 'STATE', 'DUE', 'FUNCTION', 'ATTEMPTS', 'ERROR', 'SOURCE']
    await context.output.result(page, context.output.table(head, rows))
    if (page.next !== null) await context.output.note(`More: --after ${page.next}`)
  },
})

const cancel: CommandSpec = command({
  name: 'scheduled cancel',
  summary: 'Cancel scheduled work that has not started',
  positionals: [{ name: 'ID', description: 'The work, such as sch_...', required: true }],
  options: {
    ...REMOTE,
    'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
  },
  examples: ['svc scheduled cancel sch_...'],
  async run(context, { 'operation-id': given, ...at }, [id]) {
    const scheduledId = requireId(id ?? '', 'ID', cancel)
    const operationId = given ?? context.environment.system.ids.make('opn')
    if (!isId('opn', operationId)) throw usage('--operation-id needs an opn_ identifier.', cancel)
    const remote = await openRemote(context, at)
    const request = remote.call(cancelScheduled, { params: { scheduledId }, operationId })
    const canceled = await context.output.progress('canceling', request)
    await context.output.result(canceled, [`${scheduledId} is canceled.`])
  },
})

function requireId(text: string, of: string, spec: CommandSpec): string {
  if (isId('sch', text)) return text
  throw usage(`${of} needs an sch_ identifier.`, spec)
}

export const scheduledCommands: readonly CommandSpec[] = [list, cancel]
