/** `svc data compact`: removes fields that no Release in use declares, some documents at a time. */
import { compactDocuments } from '../../../wire/operations/data.ts'
import { type CommandSpec, command, flag, requiredOption } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { REMOTE } from '../operations.ts'
import { createdAtMicros } from '../scopes.ts'
import { targetOf } from '../targets.ts'
import { TARGET } from './tables.ts'

export const compactCommand: CommandSpec = command({
  name: 'data compact',
  summary: 'Remove fields from documents that no Release in use declares',
  details: [
    'A Release is in use until it is retired. Documents are changed in batches, each with an audit',
    'record. After an interruption run the command again: it starts over, and finds less to do.',
  ],
  options: {
    ...REMOTE,
    target: TARGET,
    table: requiredOption('TABLE', 'The table, such as messages'),
    'dry-run': flag('Count the documents and fields, and change nothing'),
  },
  examples: ['svc data compact --table messages --target channel:production --dry-run'],
  async run(context, options) {
    const { table, 'dry-run': dryRun } = options
    const remote = await openRemote(context, options)
    const target = targetOf(remote, options.target, compactCommand)
    const total = { read: 0, changed: 0, removedFields: 0 }
    const compacting = async () => {
      let after: string | undefined
      do {
        const operationId = context.environment.system.ids.make('opn')
        const changedAtMicros = createdAtMicros(operationId)
        const body = { target, table, dryRun, after, changedAtMicros }
        const batch = await remote.call(compactDocuments, { operationId, body })
        total.read += batch.read
        total.changed += batch.changed
        total.removedFields += batch.removedFields
        after = batch.next ?? undefined
      } while (after !== undefined)
    }
    await context.output.progress(() => `${total.read} documents read`, compacting())
    const { read, changed, removedFields } = total
    const verb = dryRun ? 'would be removed' : 'are removed'
    await context.output.result({ version: 1, dryRun, table, ...total }, [
      `${removedFields} fields of ${changed} documents ${verb}; ${read} documents were read.`,
    ])
  },
})
