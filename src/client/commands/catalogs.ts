/** `svc functions`, its figures, and `svc tables`: what a target offers and what it stores. */
import { listFunctions, listTables } from '../../wire/operations/catalogs.ts'
import { readFunctionFigures } from '../../wire/operations/metrics.ts'
import { type CommandSpec, option } from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
import { timeText } from '../timestamps.ts'
import { fieldsText, fieldText, validatorText } from '../validator-text.ts'
import { REMOTE } from './operations.ts'
import { openTarget } from './targets.ts'

const OPTIONS = {
  ...REMOTE,
  target: option('TARGET', 'channel:NAME, workspace:NAME or the like; needed without svc dev'),
} as const

export const functionsCommand: CommandSpec = requestCommand({
  name: 'functions',
  summary: 'List the Functions of a target, with their arguments and results',
  options: OPTIONS,
  examples: ['svc functions --target workspace:default'],
  open: (context, at) => openTarget(context, at, functionsCommand),
  progress: 'reading the Functions',
  request: ({ call, target }) => call(listFunctions, { query: { target }, subjects: { target } }),
  lines: ({ releaseId, functions }, { output, server }) => [
    `${output.bold(releaseId)}  ${server.target}`,
    '',
    ...output.columns(functions, {
      FUNCTION: 'name',
      KIND: 'kind',
      CLIENTS: ({ visibility, clients }) =>
        visibility === 'internal' ? 'internal' : clients.join(',') || '-',
      AUTH: 'auth',
      ARGUMENTS: (item) => fieldsText(item.arguments),
      RETURNS: ({ returns }) => validatorText(returns),
    }),
  ],
})

export const functionFiguresCommand: CommandSpec = requestCommand({
  name: 'functions stats',
  summary: 'Show calls, errors and durations of the Functions of a target',
  details: [
    'It shows the last hour. Durations are those of executed calls, from their admission to their',
    'result, within 5 %. REJECTED are errors that a Function declares, and arguments that it does',
    'not accept; FAILED are failures of the Function and of the server. A restart of the server',
    'begins anew.',
    'Needs usage:read, and a server of version 0.5.0 or newer.',
  ],
  options: OPTIONS,
  examples: ['svc functions stats --target channel:production'],
  open: (context, at) => openTarget(context, at, functionFiguresCommand),
  progress: 'reading the figures',
  request: ({ call, target }) =>
    call(readFunctionFigures, { query: { target }, subjects: { target } }),
  explains: {
    PLATFORM_NOT_FOUND: {
      detail: 'This server has no figures of Functions: it is older than 0.5.0.',
      next: 'Update the server to 0.5.0 or newer.',
    },
  },
  lines: ({ releaseId, sinceMicros, functions }, { output, server }) => [
    `${output.bold(releaseId)}  ${server.target}, since ${timeText(sinceMicros)}`,
    '',
    ...(functions.length === 0
      ? ['No Function was called.']
      : output.columns(functions, {
          FUNCTION: 'name',
          KIND: 'kind',
          CALLS: 'calls',
          CACHED: 'cached',
          REJECTED: 'rejected',
          FAILED: 'failed',
          '50 %': ({ p50Micros }) => durationText(p50Micros),
          '95 %': ({ p95Micros }) => durationText(p95Micros),
          '99 %': ({ p99Micros }) => durationText(p99Micros),
        })),
  ],
})

function durationText(micros: string | null): string {
  if (micros === null) return '-'
  const millis = Number(micros) / 1_000
  return millis < 1_000
    ? `${Number(millis.toPrecision(3))} ms`
    : `${Number((millis / 1_000).toPrecision(3))} s`
}

export const tablesCommand: CommandSpec = requestCommand({
  name: 'tables',
  summary: 'List the tables of a target, with their fields and indexes',
  options: OPTIONS,
  examples: ['svc tables --target workspace:default'],
  open: (context, at) => openTarget(context, at, tablesCommand),
  progress: 'reading the tables',
  request: ({ call, target }) => call(listTables, { query: { target } }),
  lines: ({ releaseId, tables }, { output, server }) => [
    `${output.bold(releaseId)}  ${server.target}`,
    ...tables.flatMap(({ name, fields, indexes }) => [
      '',
      output.bold(name),
      ...output.columns(Object.entries(fields), {
        FIELD: ([field]) => field,
        TYPE: ([, json]) => fieldText(json),
      }),
      ...indexes.map(({ name, fields, unique }) => {
        return `${unique ? 'unique' : 'index'} ${name}(${fields.join(', ')})`
      }),
    ]),
  ],
})
