/** `svc config`: variables and secrets of the linked Environment. A secret is never an argument. */
import { Fault, isFault } from '../../errors/fault.ts'
import { isConfigurationName } from '../../value/configuration.ts'
import { formatTimestamp } from '../../value/plain.ts'
import type { ConfigurationChanged, EntryField } from '../../wire/configuration.ts'
import { PAGE_MAX } from '../../wire/fields.ts'
import {
  deleteConfiguration,
  listConfiguration,
  listConfigurationChanges,
  setConfiguration,
} from '../../wire/operations/configuration.ts'
import { type CommandSpec, type Context, command, flag, option } from '../contexts.ts'
import { explained } from '../explanations.ts'
import { openRemote, type Remote, type RemoteOptions } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import { printable } from '../visible-text.ts'
import { secretValue, variableValue } from './config-values.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  REMOTE,
  rethrowChange,
} from './operations.ts'

const EDIT = changeOptions('the configuration')
const NAME = { name: 'NAME', description: 'The name, such as API_KEY', required: true } as const
/** Characters of a value in a table; --json prints the whole value. */
const VALUE_SHOWN_MAX = 60

const list: CommandSpec = command({
  name: 'config list',
  summary: 'List variables with their values, and secrets without values',
  options: REMOTE,
  async run(context, at) {
    const request = (await openRemote(context, at)).call(listConfiguration)
    const found = await context.output.progress('reading the configuration', request)
    // Other unknown fields are printed with --json, but never the value of a secret.
    if (found.entries.some((entry) => entry.kind === 'secret' && 'value' in entry)) {
      throw new Fault('CLIENT_RESPONSE_INVALID', { detail: 'A secret has a value.' })
    }
    const rows = found.entries.map((entry) => [
      entry.name,
      entry.kind,
      shownValue(entry),
      entry.revision,
      formatTimestamp(BigInt(entry.updatedAtMicros)),
    ])
    const head = ['NAME', 'KIND', 'VALUE', 'REVISION', 'UPDATED']
    await context.output.result(found, context.output.table(head, rows))
    await context.output.note(`Revision ${found.revision}`)
  },
})

const set: CommandSpec = command({
  name: 'config set',
  summary: 'Set a variable or a secret',
  details: [
    'The value of a variable is an argument. Values of variables and secrets can also come from',
    'the environment variable that --value-env names, or from standard input (without the line',
    'end). A secret can be typed on a terminal, which does not show it. Functions read the new',
    'value from their next call on. To repeat a change safely, repeat it with the same',
    '--operation-id, --expected and value.',
  ],
  positionals: [
    NAME,
    { name: 'VALUE', description: 'The value of a variable, never of a secret', required: false },
  ],
  options: {
    ...EDIT,
    secret: flag('Seal the value: only Actions that name it can read it'),
    'value-env': option('VAR', 'Environment variable that holds the value'),
  },
  examples: ['svc config set GREETING hello', 'svc config set API_KEY --secret < api-key.txt'],
  async run(context, options, [name, argument]) {
    const input = { argument, variable: options['value-env'] }
    const edit = editOf(context, set, name, options)
    const content = options.secret
      ? { kind: 'secret' as const, value: await secretValue(context, set, input) }
      : { kind: 'variable' as const, value: await variableValue(context, set, input) }
    await apply(context, options, { ...edit, content })
  },
})

const unset: CommandSpec = command({
  name: 'config unset',
  summary: 'Delete a variable or a secret',
  positionals: [NAME],
  options: EDIT,
  examples: ['svc config unset API_KEY'],
  async run(context, options, [name]) {
    await apply(context, options, { ...editOf(context, unset, name, options), content: null })
  },
})

const history: CommandSpec = command({
  name: 'config history',
  summary: 'Show who set and deleted which name, newest first, without values',
  options: {
    ...REMOTE,
    limit: option('COUNT', `Number of changes, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('CURSOR', 'The `next` value of the previous page'),
  },
  async run(context, { limit, after, ...at }) {
    if (limit !== undefined && !(/^[1-9][0-9]*$/.test(limit) && Number(limit) <= PAGE_MAX)) {
      throw usage(`--limit needs a number from 1 to ${PAGE_MAX}.`, history)
    }
    const remote = await openRemote(context, at)
    const request = remote.call(listConfigurationChanges, { query: { limit, after } })
    const page = await context.output.progress('reading the history', request)
    const rows = page.entries.map((change) => [
      change.revision,
      change.action,
      change.kind,
      change.name,
      change.operatorId,
      formatTimestamp(BigInt(change.changedAtMicros)),
    ])
    const head = ['REVISION', 'ACTION', 'KIND', 'NAME', 'OPERATOR', 'TIME']
    await context.output.result(page, context.output.table(head, rows))
    if (page.next !== null) await context.output.note(`More: --after ${page.next}`)
  },
})

type Edit = ChangeIntent & { readonly name: string }

interface Content {
  /** Null deletes the name. */
  readonly content: { readonly kind: 'variable' | 'secret'; readonly value: string } | null
}

function editOf(
  context: Context,
  command: CommandSpec,
  name: string | undefined,
  options: Parameters<typeof changeIntent>[2],
): Edit {
  // The message does not repeat the argument, which may be a misplaced secret.
  if (name === undefined || !isConfigurationName(name)) {
    throw usage('NAME needs 1 to 64 upper-case letters, digits and _, such as API_KEY.', command)
  }
  return { ...changeIntent(context, command, options), name }
}

async function apply(
  context: Context,
  at: RemoteOptions,
  { expected, ...edit }: Edit & Content,
): Promise<void> {
  const remote = await openRemote(context, at)
  const work = async (): Promise<ConfigurationChanged> => {
    const expectedRevision =
      expected ??
      (await remote.call(listConfigurationChanges, { query: { limit: 1 } })).entries[0]?.revision ??
      '0'
    return send(remote, { ...edit, expectedRevision })
  }
  const changed = await context.output
    .progress('changing the configuration', work())
    .catch((error) => rethrowEdit(error, edit))
  const { action, kind, name, revision } = changed.change
  const verb = action === 'set' ? 'Set' : 'Deleted'
  const when = changed.operation.replayed ? ' before' : ''
  await context.output.result(changed, [`${verb}${when}: ${kind} ${name}, revision ${revision}.`])
}

function send(
  remote: Remote,
  {
    operationId,
    name,
    content,
    ...expected
  }: Omit<Edit, 'expected'> & Content & { readonly expectedRevision: string },
): Promise<ConfigurationChanged> {
  const named = { params: { name }, operationId, subjects: { name } }
  return content === null
    ? remote.call(deleteConfiguration, { ...named, body: expected })
    : remote.call(setConfiguration, { ...named, body: { ...expected, ...content } })
}

function rethrowEdit(error: unknown, { name, content }: Pick<Edit, 'name'> & Content): never {
  if (!isFault(error, 'PRODUCT_STATE_CONFLICT') || content === null) {
    return rethrowChange(error, 'svc config history')
  }
  const next = `Run \`svc config unset ${name}\`, then set it as a ${content.kind} again.`
  throw explained(error, { next })
}

function shownValue(entry: EntryField): string {
  if (entry.kind === 'secret') return '(sealed)'
  const value = printable(entry.value)
  return value.length > VALUE_SHOWN_MAX ? `${value.slice(0, VALUE_SHOWN_MAX)}...` : value
}

export const configCommands: readonly CommandSpec[] = [list, set, unset, history]
