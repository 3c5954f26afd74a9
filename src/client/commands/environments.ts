/** `svc environments`: configuration and lifecycle of the linked Environment. */
import { isFault } from '../../errors/fault.ts'
import type { OperationId } from '../../value/ids.ts'
import type {
  EnvironmentChanged,
  EnvironmentConfigurationField,
  EnvironmentState,
} from '../../wire/environment.ts'
import { EnvironmentConfigurationField as Configuration } from '../../wire/environment.ts'
import {
  archiveEnvironment,
  readEnvironment,
  restoreEnvironment,
  updateEnvironment,
} from '../../wire/operations/environments.ts'
import { type CommandSpec, choice, flag, option } from '../contexts.ts'
import { requestCommand } from '../request-commands.ts'
import type { Remote } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  REMOTE,
  staleRevision,
} from './operations.ts'

const CHANGE = changeOptions('the Environment')
/** The parts that the changes of the Environment share. */
const CHANGING = {
  progress: 'changing the Environment',
  explains: staleRevision('svc environments get'),
  lines: (changed: EnvironmentChanged) => [
    `${changed.operation.replayed ? 'Changed before' : 'Changed'}: ${progressOf(changed)}`,
  ],
}

const get = requestCommand({
  name: 'environments get',
  summary: 'Show the configuration of the Environment and whether it serves',
  options: REMOTE,
  progress: 'reading the Environment',
  request: (remote) => remote.call(readEnvironment),
  lines: (state, { output }) => [
    ...output.columns(Object.entries(state.desired.configuration), {
      SETTING: ([name]) => name,
      VALUE: ([, value]) => value ?? '(none)',
    }),
    progressOf(state),
  ],
})

const PURPOSES: readonly EnvironmentConfigurationField['purpose'][] = [
  'development',
  'preview',
  'staging',
  'production',
]
const PROTECTIONS: readonly EnvironmentConfigurationField['protection'][] = ['none', 'protected']
const TARGET_POLICIES: readonly EnvironmentConfigurationField['workspaceTargets'][] = [
  'allowed',
  'denied',
]

const update: CommandSpec = requestCommand({
  name: 'environments update',
  summary: 'Change settings of the Environment and keep those that are not given',
  details: [
    'In a protected Environment a promotion must name the Release that it replaces. The policy',
    'denied for Workspace targets rejects every call of workspace:NAME.',
  ],
  options: {
    ...CHANGE,
    name: option('NAME', 'Display name'),
    slug: option('SLUG', 'Short name that is unique in the Project'),
    region: option('REGION', 'Logical region'),
    purpose: choice('PURPOSE', PURPOSES, 'development, preview, staging or production'),
    protection: choice('PROTECTION', PROTECTIONS, 'none or protected'),
    location: option('TEXT', 'Physical location'),
    'no-location': flag('Remove the location'),
    'workspace-targets': choice('POLICY', TARGET_POLICIES, 'allowed or denied'),
  },
  examples: ['svc environments update --purpose production --protection protected'],
  input(options, _, context) {
    if (options.location !== undefined && options['no-location']) {
      throw usage('--location and --no-location exclude each other.', update)
    }
    const given = {
      ...pick(options, ['name', 'slug', 'region', 'purpose', 'protection', 'location']),
      ...(options['no-location'] && { location: null }),
      ...(options['workspace-targets'] && { workspaceTargets: options['workspace-targets'] }),
    }
    if (Object.keys(given).length === 0)
      throw usage('No setting is given. Give at least one setting to change.', update)
    return { given, intent: changeIntent(context, update, options) }
  },
  request: (remote, { given, intent }) =>
    change(remote, intent, async ({ operationId, body }, state) => {
      const configuration = await complete({ ...state.desired.configuration, ...given })
      return remote.call(updateEnvironment, { operationId, body: { ...body, configuration } })
    }),
  ...CHANGING,
})

const archive: CommandSpec = requestCommand({
  name: 'environments archive',
  summary: 'Stop serving: calls in flight finish, later calls are rejected',
  options: CHANGE,
  input: (options, _, context) => changeIntent(context, archive, options),
  request: (remote, intent) =>
    change(remote, intent, (asked) => remote.call(archiveEnvironment, asked)),
  ...CHANGING,
})

const restore: CommandSpec = requestCommand({
  name: 'environments restore',
  summary: 'Serve the Channels and the serving policy again',
  options: CHANGE,
  input: (options, _, context) => changeIntent(context, restore, options),
  request: (remote, intent) =>
    change(remote, intent, (asked) => remote.call(restoreEnvironment, asked)),
  ...CHANGING,
})

type Given<N extends string> = { readonly [name in N]: string | undefined }

function pick<N extends string>(options: Given<N>, names: readonly N[]): Partial<Given<N>> {
  const given = names.filter((name) => options[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, options[name]])) as Partial<Given<N>>
}

/** Validates the configuration before it is sent. Throws CLIENT_USAGE that names the option. */
async function complete(configuration: object): Promise<EnvironmentConfigurationField> {
  const { read } = await import('../../wire/reading/read.ts')
  try {
    return read(Configuration, configuration, 'CLIENT_USAGE')
  } catch (error) {
    if (!isFault(error, 'CLIENT_USAGE')) throw error
    const setting = error.violations[0]!.path
    const name = setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    throw usage(`--${name} does not have a valid value for an Environment.`, update)
  }
}

interface Change {
  readonly operationId: OperationId
  readonly body: { readonly expectedRevision: string; readonly changedAtMicros: string }
}

async function change(
  remote: Remote,
  { expected, operationId, changedAtMicros }: ChangeIntent,
  send: (asked: Change, state: EnvironmentState) => Promise<EnvironmentChanged>,
): Promise<EnvironmentChanged> {
  const state = await remote.call(readEnvironment)
  const expectedRevision = expected ?? state.desired.revision
  return send({ operationId, body: { expectedRevision, changedAtMicros } }, state)
}

function progressOf({ desired, observed }: Pick<EnvironmentState, 'desired' | 'observed'>): string {
  const state =
    desired.revision === observed.revision
      ? observed.serving
      : `${observed.lifecycle} and ${observed.serving} until it is applied`
  return `revision ${desired.revision} is desired, ${desired.lifecycle}; ${state}.`
}

export const environmentCommands: readonly CommandSpec[] = [get, update, archive, restore]
