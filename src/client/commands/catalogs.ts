/** `svc functions` and `svc tables`: what a target offers and what it stores. */
import { valueToPlain } from '../../value/plain.ts'
import { fromStoredJson } from '../../value/stored.ts'
import type { FieldsJson, OptionalJson, ValidatorJson } from '../../value/validators.ts'
import { listFunctions, listTables } from '../../wire/operations/catalogs.ts'
import { type CommandSpec, option } from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
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

/** Returns a type in the notation of TypeScript, such as `{ body: string, likes?: int64 }`. */
export function validatorText(json: ValidatorJson): string {
  switch (json.type) {
    case 'id':
      return `id(${json.table})`
    case 'literal':
      return 'string' in json.value
        ? JSON.stringify(json.value.string)
        : String(Object.values(json.value)[0])
    case 'array':
      return `${grouped(json.items)}[]`
    case 'object':
      return fieldsText(json.fields)
    case 'record':
      return `record(${validatorText(json.values)})`
    case 'union':
      return json.members.map(validatorText).join(' | ')
    case 'open':
      return `open(${validatorText(json.inner)})`
    case 'nullable':
      return `${validatorText(json.inner)} | null`
    default:
      return json.type
  }
}

function fieldsText(fields: FieldsJson): string {
  const entries = Object.entries(fields).map(([name, json]) => {
    return json.type === 'optional'
      ? `${name}?: ${validatorText(json.inner)}${defaultText(json)}`
      : `${name}: ${validatorText(json)}`
  })
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

/** Returns the type of a field of a table, such as `optional int64 = 3`. */
export function fieldText(json: FieldsJson[string]): string {
  if (json.type !== 'optional') return validatorText(json)
  return `optional ${validatorText(json.inner)}${defaultText(json)}`
}

/** Characters of a default that a table shows. `--json` has the whole one. */
const DEFAULT_SHOWN_MAX = 40

/** Returns ` = 3` for the default of a field, as plain JSON; empty without a default. */
function defaultText(json: OptionalJson): string {
  if (json.default === undefined) return ''
  const text = JSON.stringify(valueToPlain(fromStoredJson(json.default)))
  return ` = ${text.length > DEFAULT_SHOWN_MAX ? `${text.slice(0, DEFAULT_SHOWN_MAX - 1)}…` : text}`
}

/** A type that is one of several stands in parentheses before `[]`. */
function grouped(json: ValidatorJson): string {
  const text = validatorText(json)
  return json.type === 'union' || json.type === 'nullable' ? `(${text})` : text
}
