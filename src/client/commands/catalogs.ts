/** `svc functions` and `svc tables`: what a target offers and what it stores. */
import { listFunctions, listTables } from '../../wire/operations/catalogs.ts'
import { type CommandSpec, option } from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
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
