/** `svc config`: variables and secrets of the linked Environment. A secret is never an argument. */
import { Fault } from '../../errors/fault.ts'
import { isConfigurationName } from '../../value/configuration.ts'
import type { ConfigurationChanged, EntryField } from '../../wire/configuration.ts'
import { PAGE_MAX } from '../../wire/fields.ts'
import {
  deleteConfiguration,
  listConfiguration,
  listConfigurationChanges,
  setConfiguration,
} from '../../wire/operations/configuration.ts'
import {
  argument,
  type CommandSpec,
  type Context,
  flag,
  option,
  optionalArgument,
} from '../contexts.ts'
import { type Explanations, isPageLimit, nextPage, requestCommand } from '../request-commands.ts'
import type { Remote } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { printable } from '../visible-text.ts'
import { secretValue, variableValue } from './config-values.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  REMOTE,
  staleRevision,
} from './operations.ts'

const EDIT = changeOptions('the configuration')
const NAME = argument('NAME', 'The name, such as API_KEY')
/** The parts that the changes of the configuration share. */
const EDITING = {
  progress: 'changing the configuration',
  request: send,
  explains: explanationsOf,
  lines({ change: { action, kind, name, revision }, operation }: ConfigurationChanged): string[] {
    const verb = action === 'set' ? 'Set' : 'Deleted'
    return [`${verb}${operation.replayed ? ' before' : ''}: ${kind} ${name}, revision ${revision}.`]
  },
}
/** Characters of a value in a table; --json prints the whole value. */
const VALUE_SHOWN_MAX = 60

const list = requestCommand({
  name: 'config list',
  summary: 'List variables with their values, and secrets without values',
  options: REMOTE,
  progress: 'reading the configuration',
  async request(remote) {
    const found = await remote.call(listConfiguration)
    // Other unknown fields are printed with --json, but never the value of a secret.
    if (found.entries.some((entry) => entry.kind === 'secret' && 'value' in entry)) {
      throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'A secret has a value.' })
    }
    return found
  },
  rows: ({ entries }) => entries,
  columns: {
    NAME: 'name',
    KIND: 'kind',
    VALUE: shownValue,
    REVISION: 'revision',
    UPDATED: 'updatedAtMicros',
  },
  note: ({ revision }) => `Revision ${revision}`,
})

const set: CommandSpec = requestCommand({
  name: 'config set',
  summary: 'Set a variable or a secret',
  details: [
    'The value of a variable is an argument. Values of variables and secrets can also come from',
    'the environment variable that --value-env names, or from standard input (without the line',
    'end). A secret can be typed on a terminal, which does not show it. Functions read the new',
    'value from their next call on. To repeat a change safely, repeat it with the same',
    '--operation-id, --expected and value.',
  ],
  positionals: [NAME, optionalArgument('VALUE', 'The value of a variable, never of a secret')],
  options: {
    ...EDIT,
    secret: flag('Seal the value: only Actions that name it can read it'),
    'value-env': option('VAR', 'Environment variable that holds the value'),
  },
  examples: ['svc config set GREETING hello', 'svc config set API_KEY --secret < api-key.txt'],
  async input(options, [name, argument], context) {
    const input = { argument, variable: options['value-env'] }
    const edit = editOf(context, set, name, options)
    const content = options.secret
      ? { kind: 'secret' as const, value: await secretValue(context, set, input) }
      : { kind: 'variable' as const, value: await variableValue(context, set, input) }
    return { ...edit, content }
  },
  ...EDITING,
})

const unset: CommandSpec = requestCommand({
  name: 'config unset',
  summary: 'Delete a variable or a secret',
  positionals: [NAME],
  options: EDIT,
  examples: ['svc config unset API_KEY'],
  input: (options, [name], context) => ({
    ...editOf(context, unset, name, options),
    content: null,
  }),
  ...EDITING,
})

const history: CommandSpec = requestCommand({
  name: 'config history',
  summary: 'Show who set and deleted which name, newest first, without values',
  options: {
    ...REMOTE,
    limit: option('COUNT', `Number of changes, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('CURSOR', 'The `next` value of the previous page'),
  },
  input({ limit, after }) {
    if (limit !== undefined && !isPageLimit(limit)) {
      throw usage(`--limit needs a number from 1 to ${PAGE_MAX}.`, history)
    }
    return { limit, after }
  },
  progress: 'reading the history',
  request: (remote, query) => remote.call(listConfigurationChanges, { query }),
  rows: ({ entries }) => entries,
  columns: {
    REVISION: 'revision',
    ACTION: 'action',
    KIND: 'kind',
    NAME: 'name',
    OPERATOR: 'operatorId',
    TIME: 'changedAtMicros',
  },
  note: nextPage,
})

interface Edit extends ChangeIntent {
  readonly name: string
  /** Null deletes the name. */
  readonly content: { readonly kind: 'variable' | 'secret'; readonly value: string } | null
}

function editOf(
  context: Context,
  command: CommandSpec,
  name: string | undefined,
  options: Parameters<typeof changeIntent>[2],
): Omit<Edit, 'content'> {
  // The message does not repeat the argument, which may be a misplaced secret.
  if (name === undefined || !isConfigurationName(name)) {
    throw usage('NAME needs 1 to 64 upper-case letters, digits and _, such as API_KEY.', command)
  }
  return { ...changeIntent(context, command, options), name }
}

async function send(
  remote: Remote,
  { operationId, name, content, expected, changedAtMicros }: Edit,
): Promise<ConfigurationChanged> {
  const newest = async () => {
    const { entries } = await remote.call(listConfigurationChanges, { query: { limit: 1 } })
    return entries[0]?.revision ?? '0'
  }
  const body = { expectedRevision: expected ?? (await newest()), changedAtMicros }
  const named = { params: { name }, operationId, subjects: { name } }
  return content === null
    ? remote.call(deleteConfiguration, { ...named, body })
    : remote.call(setConfiguration, { ...named, body: { ...body, ...content } })
}

function explanationsOf({ name, content }: Edit): Explanations {
  const stale = staleRevision('svc config history')
  if (content === null) return stale
  const next = `Run \`svc config unset ${name}\`, then set it as a ${content.kind} again.`
  return { ...stale, PRODUCT_STATE_CONFLICT: { next } }
}

function shownValue(entry: EntryField): string {
  if (entry.kind === 'secret') return '(sealed)'
  const value = printable(entry.value)
  return value.length > VALUE_SHOWN_MAX ? `${value.slice(0, VALUE_SHOWN_MAX)}...` : value
}

export const configCommands: readonly CommandSpec[] = [list, set, unset, history]
