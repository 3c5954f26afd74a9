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
import { type CommandSpec, type Context, command, flag, option } from '../contexts.ts'
import { openRemote, type Remote, type RemoteOptions } from '../roots/remotes.ts'
import { usage } from '../usage.ts'
import {
  type ChangeIntent,
  changeIntent,
  changeOptions,
  REMOTE,
  rethrowChange,
} from './operations.ts'

const CHANGE = changeOptions('the Environment')

const get: CommandSpec = command({
  name: 'environments get',
  summary: 'Show the configuration of the Environment and whether it serves',
  options: REMOTE,
  async run(context, at) {
    const request = (await openRemote(context, at)).call(readEnvironment)
    const state = await context.output.progress('reading the Environment', request)
    const { configuration } = state.desired
    const rows = Object.entries(configuration).map(([name, value]) => [name, value ?? '(none)'])
    await context.output.result(state, [
      ...context.output.table(['SETTING', 'VALUE'], rows),
      progressOf(state),
    ])
  },
})

const update: CommandSpec = command({
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
    purpose: option('PURPOSE', 'development, preview, staging or production'),
    protection: option('PROTECTION', 'none or protected'),
    location: option('TEXT', 'Physical location'),
    'no-location': flag('Remove the location'),
    'workspace-targets': option('POLICY', 'allowed or denied'),
  },
  examples: ['svc environments update --purpose production --protection protected'],
  async run(context, options) {
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
    const intent = changeIntent(context, update, options)
    await change(context, options, intent, async (remote, { operationId, body }, state) => {
      const configuration = await complete({ ...state.desired.configuration, ...given })
      return remote.call(updateEnvironment, { operationId, body: { ...body, configuration } })
    })
  },
})

const archive: CommandSpec = command({
  name: 'environments archive',
  summary: 'Stop serving: calls in flight finish, later calls are rejected',
  options: CHANGE,
  async run(context, options) {
    const intent = changeIntent(context, archive, options)
    await change(context, options, intent, (remote, asked) =>
      remote.call(archiveEnvironment, asked),
    )
  },
})

const restore: CommandSpec = command({
  name: 'environments restore',
  summary: 'Serve the Channels and the serving policy again',
  options: CHANGE,
  async run(context, options) {
    const intent = changeIntent(context, restore, options)
    await change(context, options, intent, (remote, asked) =>
      remote.call(restoreEnvironment, asked),
    )
  },
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
  context: Context,
  at: RemoteOptions,
  { expected, operationId, changedAtMicros }: ChangeIntent,
  send: (remote: Remote, asked: Change, state: EnvironmentState) => Promise<EnvironmentChanged>,
): Promise<void> {
  const remote = await openRemote(context, at)
  const work = async (): Promise<EnvironmentChanged> => {
    const state = await remote.call(readEnvironment)
    const expectedRevision = expected ?? state.desired.revision
    return send(remote, { operationId, body: { expectedRevision, changedAtMicros } }, state)
  }
  const changed = await context.output
    .progress('changing the Environment', work())
    .catch((error) => rethrowChange(error, 'svc environments get'))
  const when = changed.operation.replayed ? 'Changed before' : 'Changed'
  await context.output.result(changed, [`${when}: ${progressOf(changed)}`])
}

function progressOf({ desired, observed }: Pick<EnvironmentState, 'desired' | 'observed'>): string {
  const state =
    desired.revision === observed.revision
      ? observed.serving
      : `${observed.lifecycle} and ${observed.serving} until it is applied`
  return `revision ${desired.revision} is desired, ${desired.lifecycle}; ${state}.`
}

export const environmentCommands: readonly CommandSpec[] = [get, update, archive, restore]
