/** `svc scheduled`: work that is pending or has ended, and its cancellation. */
import { PAGE_MAX } from '../../../wire/fields.ts'
import { cancelScheduled, listScheduled } from '../../../wire/operations/schedules.ts'
import { argument, type CommandSpec, option } from '../../contexts.ts'
import { isPageLimit, nextPage, requestCommand } from '../../request-commands.ts'
import { requireId, usage } from '../../usage.ts'
import { OPERATION_ID, operationIdOf, REMOTE } from '../operations.ts'

const list: CommandSpec = requestCommand({
  name: 'scheduled list',
  summary: 'List scheduled work that is pending or has ended within 7 days',
  options: {
    ...REMOTE,
    limit: option('COUNT', `Entries of the page, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('sch_ID', 'The `next` of the page before'),
  },
  examples: ['svc scheduled list'],
  input({ limit = '100', after }) {
    if (!isPageLimit(limit)) throw usage(`--limit is 1 to ${PAGE_MAX}.`, list)
    if (after !== undefined) requireId('sch', after, '--after', list)
    return { limit, after }
  },
  progress: 'reading the scheduled work',
  request: (remote, query) => remote.call(listScheduled, { query }),
  rows: ({ items }) => items,
  columns: {
    ID: 'scheduledId',
    STATE: 'state',
    DUE: 'dueAtMicros',
    FUNCTION: 'function',
    ATTEMPTS: 'attempts',
    ERROR: 'lastErrorCode',
    SOURCE: 'source',
  },
  note: nextPage,
})

const cancel: CommandSpec = requestCommand({
  name: 'scheduled cancel',
  summary: 'Cancel scheduled work that has not started',
  positionals: [argument('ID', 'The work, such as sch_...')],
  options: { ...REMOTE, 'operation-id': OPERATION_ID },
  examples: ['svc scheduled cancel sch_...'],
  input: ({ 'operation-id': given }, [id], context) => ({
    scheduledId: requireId('sch', id, 'ID', cancel),
    operationId: operationIdOf(context, cancel, given),
  }),
  progress: 'canceling',
  request: (remote, { scheduledId, operationId }) =>
    remote.call(cancelScheduled, { params: { scheduledId }, operationId }),
  lines: (_, { input: { scheduledId } }) => [`${scheduledId} is canceled.`],
})

export const scheduledCommands: readonly CommandSpec[] = [list, cancel]
