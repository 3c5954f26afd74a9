/** `svc crons`: the Crons in force, their activation, and runs by hand. */
import { isId } from '../../../value/ids.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import { type Activation, CRON_NAME, timesText } from '../../../value/scheduling/crons.ts'
import type { CronList } from '../../../wire/crons.ts'
import { activateCron, listCrons, runCron } from '../../../wire/operations/crons.ts'
import { type CommandSpec, command, option } from '../../contexts.ts'
import { openRemote } from '../../roots/remotes.ts'
import { usage } from '../../usage.ts'
import { changeIntent, changeOptions, REMOTE, rethrowChange } from '../operations.ts'

const CRON = {
  name: 'NAME',
  description: 'The Cron, as crons.ts names it',
  required: true,
} as const

const list: CommandSpec = command({
  name: 'crons list',
  summary: 'List the Crons in force and when they run',
  details: [
    'In force are the Crons of the Release with the greatest weight in the serving policy, ties by',
    'ID. Without a policy those of Channel production are. --target lists the Crons that another',
    'Release declares.',
  ],
  options: {
    ...REMOTE,
    target: option('TARGET', 'A target such as channel:staging; by default what is in force'),
  },
  examples: ['svc crons list'],
  async run(context, { target, ...at }) {
    const remote = await openRemote(context, at)
    const subjects = target === undefined ? {} : { target }
    const request = remote.call(listCrons, { query: { target }, subjects })
    const found = await context.output.progress('reading the Crons', request)
    const rows = found.crons.map((cron) => [
      cron.name,
      cron.activation,
      timesText({ ...cron, everyMillis: cron.every?.milliseconds ?? null }),
      cron.function,
      cron.overlap,
      timeOf(cron.lastRunAtMicros),
      timeOf(cron.nextRunAtMicros),
    ])
    const head = ['NAME', 'ACTIVATION', 'TIMES', 'FUNCTION', 'OVERLAP', 'LAST RUN', 'NEXT RUN']
    const table = rows.length === 0 ? [] : context.output.table(head, rows)
    const count = rows.length === 1 ? '1 Cron' : `${rows.length || 'no'} Crons`
    const release = target === undefined ? `${found.releaseId}, in force,` : found.releaseId
    await context.output.result(found, [`${release} declares ${count}.`, ...table])
  },
})

const enable = activation('enable', 'enabled', 'Let a Cron run at its times again')
const disable = activation('disable', 'disabled', 'Stop the runs of a Cron, in later Releases too')

function activation(verb: string, state: Activation, summary: string): CommandSpec {
  const spec: CommandSpec = command({
    name: `crons ${verb}`,
    summary,
    positionals: [CRON],
    options: changeOptions('the activation'),
    examples: [`svc crons ${verb} digest`],
    async run(context, options, [given]) {
      const name = requireName(given ?? '', spec)
      const { expected, operationId, changedAtMicros } = changeIntent(context, spec, options)
      const remote = await openRemote(context, options)
      const work = async () => {
        const expectedRevision = expected ?? revisionOf(await remote.call(listCrons), name)
        return remote.call(activateCron, {
          params: { cron: name },
          operationId,
          body: { expectedRevision, activation: state, changedAtMicros },
          subjects: { cron: name },
        })
      }
      const changed = await context.output
        .progress(`changing ${name}`, work())
        .catch((error) => rethrowChange(error, 'svc crons list'))
      const next =
        changed.nextRunAtMicros === null ? '' : `, next at ${timeOf(changed.nextRunAtMicros)}`
      await context.output.result(changed, [`${name} is ${changed.activation}${next}.`])
    },
  })
  return spec
}

const run: CommandSpec = command({
  name: 'crons run',
  summary: 'Run a Cron now, beside its times and also while it is disabled',
  positionals: [CRON],
  options: {
    ...REMOTE,
    'operation-id': option('opn_ID', 'Operation ID; a new one by default'),
  },
  examples: ['svc crons run digest'],
  async run(context, { 'operation-id': id, ...at }, [given]) {
    const name = requireName(given ?? '', run)
    const operationId = id ?? context.environment.system.ids.make('opn')
    if (!isId('opn', operationId)) throw usage('--operation-id needs an opn_ identifier.', run)
    const remote = await openRemote(context, at)
    const cron = { cron: name }
    const request = remote.call(runCron, { params: cron, operationId, subjects: cron })
    const work = await context.output.progress(`running ${name}`, request)
    const where = 'See how it ends with `svc scheduled list`.'
    await context.output.result(work, [`${name} runs as ${work.scheduledId}. ${where}`])
  },
})

function requireName(name: string, spec: CommandSpec): string {
  if (CRON_NAME.test(name)) return name
  throw usage('NAME is the name of a Cron, such as digest.', spec)
}

/** Returns 0 for a Cron that is not in force, which the server then rejects. */
function revisionOf({ crons }: CronList, name: string): string {
  return crons.find((cron) => cron.name === name)?.revision ?? '0'
}

function timeOf(micros: string | null): string {
  return micros === null ? '-' : formatTimestamp(BigInt(micros))
}

export const cronCommands: readonly CommandSpec[] = [list, enable, disable, run]
