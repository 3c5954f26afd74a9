/** `svc crons`: the Crons in force, their activation, and runs by hand. */
import { type Activation, CRON_NAME, timesText } from '../../../value/scheduling/crons.ts'
import type { CronList } from '../../../wire/crons.ts'
import { activateCron, listCrons, runCron } from '../../../wire/operations/crons.ts'
import { argument, type CommandSpec, option } from '../../contexts.ts'
import { requestCommand } from '../../request-commands.ts'
import { timeText } from '../../timestamps.ts'
import { usage } from '../../usage.ts'
import {
  changeIntent,
  changeOptions,
  OPERATION_ID,
  operationIdOf,
  REMOTE,
  staleRevision,
} from '../operations.ts'

const CRON = argument('NAME', 'The Cron, as crons.ts names it')

const list: CommandSpec = requestCommand({
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
  input: ({ target }) => ({ target }),
  progress: 'reading the Crons',
  request: (remote, { target }) =>
    remote.call(listCrons, { query: { target }, subjects: target === undefined ? {} : { target } }),
  lines: ({ releaseId, crons }, { output, input }) => {
    const table = output.columns(crons, {
      NAME: 'name',
      ACTIVATION: 'activation',
      TIMES: (cron) => timesText({ ...cron, everyMillis: cron.every?.milliseconds ?? null }),
      FUNCTION: 'function',
      OVERLAP: 'overlap',
      'LAST RUN': 'lastRunAtMicros',
      'NEXT RUN': 'nextRunAtMicros',
    })
    const count = crons.length === 1 ? '1 Cron' : `${crons.length || 'no'} Crons`
    const release = input.target === undefined ? `${releaseId}, in force,` : releaseId
    return [`${release} declares ${count}.`, ...(crons.length === 0 ? [] : table)]
  },
})

const enable = activation('enable', 'enabled', 'Let a Cron run at its times again')
const disable = activation('disable', 'disabled', 'Stop the runs of a Cron, in later Releases too')

function activation(verb: string, state: Activation, summary: string): CommandSpec {
  const spec: CommandSpec = requestCommand({
    name: `crons ${verb}`,
    summary,
    positionals: [CRON],
    options: changeOptions('the activation'),
    examples: [`svc crons ${verb} digest`],
    input: (options, [name], context) => ({
      name: requireName(name, spec),
      ...changeIntent(context, spec, options),
    }),
    progress: ({ name }) => `changing ${name}`,
    async request(remote, { name, expected, operationId, changedAtMicros }) {
      const expectedRevision = expected ?? revisionOf(await remote.call(listCrons), name)
      const body = { expectedRevision, activation: state, changedAtMicros }
      const cron = { cron: name }
      return remote.call(activateCron, { params: cron, operationId, body, subjects: cron })
    },
    explains: staleRevision('svc crons list'),
    lines({ activation, nextRunAtMicros }, { input }) {
      const next = nextRunAtMicros === null ? '' : `, next at ${timeText(nextRunAtMicros)}`
      return [`${input.name} is ${activation}${next}.`]
    },
  })
  return spec
}

const run: CommandSpec = requestCommand({
  name: 'crons run',
  summary: 'Run a Cron now, beside its times and also while it is disabled',
  positionals: [CRON],
  options: { ...REMOTE, 'operation-id': OPERATION_ID },
  examples: ['svc crons run digest'],
  input: ({ 'operation-id': given }, [name], context) => ({
    name: requireName(name, run),
    operationId: operationIdOf(context, run, given),
  }),
  progress: ({ name }) => `running ${name}`,
  request(remote, { name, operationId }) {
    const cron = { cron: name }
    return remote.call(runCron, { params: cron, operationId, subjects: cron })
  },
  lines: ({ scheduledId }, { input: { name } }) => [
    `${name} runs as ${scheduledId}. See how it ends with \`svc scheduled list\`.`,
  ],
})

function requireName(name: string | undefined, spec: CommandSpec): string {
  if (name !== undefined && CRON_NAME.test(name)) return name
  throw usage('NAME is the name of a Cron, such as digest.', spec)
}

/** Returns 0 for a Cron that is not in force, which the server then rejects. */
function revisionOf({ crons }: CronList, name: string): string {
  return crons.find((cron) => cron.name === name)?.revision ?? '0'
}

export const cronCommands: readonly CommandSpec[] = [list, enable, disable, run]
