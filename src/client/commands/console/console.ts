/** `svc console`: serves a page of the Environment to the browser of this machine. */
import { Fault } from '../../../errors/fault.ts'
import type { Scope } from '../../../value/scope.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import type { Json } from '../../../value/strict-json.ts'
import { BUILD_VERSION } from '../../../value/version.ts'
import { readSelf } from '../../../wire/operations/identity/auth.ts'
import { listResources } from '../../../wire/operations/identity/resources.ts'
import { ConsoleServer } from '../../console/console-server.ts'
import {
  type ConsoleEnvironment,
  ConsoleSessions,
  type Derive,
} from '../../console/console-sessions.ts'
import { IdleTimer } from '../../console/idle-timer.ts'
import { PageAccess } from '../../console/page-access.ts'
import { PageCalls } from '../../console/page-calls.ts'
import { type CommandSpec, type Context, command, flag } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { deriveSession } from '../../sessions/derived-session.ts'
import { REMOTE } from '../operations.ts'

export const consoleCommand: CommandSpec = command({
  name: 'console',
  summary: 'Open a page of the Environment in the browser',
  details: [
    'This program serves the page at a random port of 127.0.0.1 until it is interrupted, or was',
    'not used for 4 hours. The address that it shows works once, in one browser of this machine.',
    'The page acts with derived sessions, which have a part of your rights, end with yours, and',
    'never reach the browser. The server of the Environment has no page.',
  ],
  options: { ...REMOTE, 'no-open': flag('Show the address, and start no browser') },
  examples: ['svc console', 'svc console --root ./my-app --no-open'],
  async run(context, options) {
    const remote = await openRemote(context, options)
    const { environments, administration } = await context.output.progress(
      'reading what the operator may reach',
      reachable(remote),
    )
    const derive: Derive = (capabilities, scope) =>
      deriveSession(context, remote.session, { capabilities, scope, purpose: 'console' })
    const sessions = new ConsoleSessions(derive, environments, administration)
    try {
      // A server without derived sessions, and an operator without rights, fail here.
      await sessions.of(environments[0]!)
      const about = aboutOf(remote, environments, options, administration)
      await serve(context, sessions, about, !options['no-open'])
    } finally {
      await context.uninterrupted(sessions.end())
    }
  },
})

/** Serves the page until the command is interrupted. Throws CLIENT_INTERRUPTED then. */
async function serve(
  context: Context,
  sessions: ConsoleSessions,
  about: Json,
  opens: boolean,
): Promise<void> {
  const { environment, output, signal } = context
  const { CONSOLE_ASSETS } = await import('../../console/assets.generated.ts')
  const access = new PageAccess((length) => environment.system.randomBytes(length))
  const idle = new IdleTimer()
  const server = await ConsoleServer.open({
    access,
    calls: new PageCalls(sessions, environment.system),
    assets: CONSOLE_ASSETS,
    about: () => about,
    onUse: () => idle.use(),
    onRepeatedStart: () => {
      access.renew()
      void output
        .warn('The address was used a second time, so the page that it opened has ended.')
        .then(() => show(false))
        // The terminal is gone, and with it the only way to a new address.
        .catch(() => idle.end())
    },
  })
  const show = async (isFirst: boolean): Promise<void> => {
    const url = server.origin + access.startPath.reveal()
    await output.line({ event: 'ready', url }, isFirst ? `Console  ${url}` : `Open     ${url}`)
  }
  try {
    await show(true)
    const hasDesktop = environment.stderr.isTTY
    if (opens && hasDesktop)
      await environment.openBrowser(server.origin + access.startPath.reveal())
    await output.note('The address works once. Interrupt to end the console.')
    await idle.whenOver(signal)
    if (signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
    await output.note('The console ended, since it was not used.')
  } finally {
    idle.end()
    server.close()
  }
}

interface Reachable {
  readonly environments: readonly ConsoleEnvironment[]
  readonly administration: Scope | null
}

/**
 * Returns the Environments that the operator may reach at the server, that of the root first, and
 * the widest scope at which the operator manages operators.
 */
async function reachable({ session, descriptor }: Remote): Promise<Reachable> {
  const [{ resources }, { grants }] = await Promise.all([
    session.call(listResources),
    session.call(readSelf),
  ])
  const { managementOrigin } = session.profile
  const here = resources.filter((each) => [null, managementOrigin].includes(each.managementOrigin))
  const isFirst = ({ environmentId }: ConsoleEnvironment): boolean =>
    environmentId === descriptor.environmentId
  const environments = here.toSorted((a, b) => Number(isFirst(b)) - Number(isFirst(a)))
  if (environments[0] === undefined || !isFirst(environments[0])) {
    throw new Fault('PLATFORM_ACCESS_DENIED', {
      detail: `The operator has no grant for ${descriptor.environmentId}.`,
      cause: explanation({ next: 'Run `svc resources` to see what the operator may reach.' }),
    })
  }
  const scopes = grants
    .filter(({ capabilities }) => capabilities.includes('operators:manage'))
    .map(({ scope }) => scope)
  const widest = scopes.find(({ kind }) => kind === 'installation') ?? scopes[0] ?? null
  return { environments, administration: widest }
}

function aboutOf(
  remote: Remote,
  environments: readonly ConsoleEnvironment[],
  { root, dev }: { readonly root: string | undefined; readonly dev: boolean },
  administration: Scope | null,
): Json {
  const { operatorId, operatorName, sessionId, managementOrigin } = remote.session.profile
  const words = [
    ...(root === undefined ? [] : ['--root', shellQuoted(root)]),
    ...(dev ? ['--dev'] : []),
  ]
  return {
    version: BUILD_VERSION,
    operatorId,
    operatorName,
    sessionId,
    managementOrigin,
    isLocal: remote.local !== null,
    commandOptions: words.join(' '),
    administersOperators: administration !== null,
    managesInstallation: administration?.kind === 'installation',
    environmentId: remote.descriptor.environmentId,
    environments: environments.map(({ projectId, environmentId, name, capabilities }) => ({
      projectId,
      environmentId,
      name,
      capabilities: [...capabilities],
    })),
  }
}
