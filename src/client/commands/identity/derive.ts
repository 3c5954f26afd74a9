/**
 * `svc sessions derive`: opens a session with a part of the operator's rights, for a job or another
 * program. Its token is printed once, written to a file, or stored for other runs of `svc`.
 */
import { CAPABILITIES, DERIVED_SECONDS_MAX, SESSION_PURPOSES } from '../../../value/capabilities.ts'
import { formatTimestamp } from '../../../value/plain.ts'
import type { Login } from '../../../wire/identity/auth.ts'
import { deriveSession } from '../../../wire/operations/identity/sessions.ts'
import {
  type CommandSpec,
  type Context,
  choice,
  command,
  option,
  repeatedChoice,
} from '../../contexts.ts'
import { resolvePath } from '../../roots/roots.ts'
import { withSecretFile } from '../../secret-files.ts'
import { ProfileStore } from '../../sessions/profiles.ts'
import { OperatorSession, profileOf } from '../../sessions/sessions.ts'
import { usage } from '../../usage.ts'
import { parseSpan } from '../logs/times.ts'
import { SCOPE_KINDS, SCOPE_OPTIONS, scopeOf, scopeText } from './scopes.ts'

const MICROS_PER_SECOND = 1_000_000n
const LIFETIME_DEFAULT = '10m'

export const deriveCommand: CommandSpec = command({
  name: 'sessions derive',
  summary: "Open a session with a part of the operator's rights, for a job",
  details: [
    'The operator holds each capability at the scope. The session cannot be refreshed and derives',
    'no other; it ends after its lifetime, or with the session that it is derived from. Audit',
    'records of what it does name its purpose. Its token is printed once; with --token-out it is',
    'written to a new file (0600). With --config-home it is stored in that directory, and `svc`',
    'with SERVICE_CONFIG_HOME set to the directory uses it.',
  ],
  options: {
    capability: repeatedChoice(
      'CAPABILITY',
      CAPABILITIES,
      'Such as releases:publish; may be given repeatedly',
    ),
    purpose: choice('PURPOSE', SESSION_PURPOSES, `${SESSION_PURPOSES.join(', ')}; by default job`),
    lifetime: option(
      'TIME',
      `Such as 90s or 1h, which is the most; ${LIFETIME_DEFAULT} by default`,
    ),
    scope: choice(
      'SCOPE',
      SCOPE_KINDS,
      'installation, project or environment, which is the default',
    ),
    ...SCOPE_OPTIONS,
    'token-out': option('FILE', 'Write the token to this new file instead of printing it'),
    'config-home': option('DIR', 'Store the session in this directory instead of printing it'),
  },
  examples: [
    'svc sessions derive --capability releases:publish --capability channels:promote \\',
    '  --lifetime 10m --config-home ./job-session',
  ],
  async run(context, options) {
    const { capability: capabilities, purpose = 'job' } = options
    if (capabilities.length === 0) throw usage('--capability is required.', deriveCommand)
    const lifetimeSeconds = secondsOf(options.lifetime ?? LIFETIME_DEFAULT)
    const destination = destinationOf(context, options['token-out'], options['config-home'])
    const scope = await scopeOf(context, deriveCommand, {
      kind: options.scope ?? 'environment',
      projectId: options['project-id'],
      environmentId: options['environment-id'],
      root: options.root,
    })
    const session = await OperatorSession.open(context)
    const subjects = { scope: scopeText(scope) }
    const body = { capabilities, scope, purpose, lifetimeSeconds }
    const request = () =>
      context.output.progress(
        'deriving the session',
        session.call(deriveSession, { body, subjects }),
      )
    const login = await delivered(context, session, destination, request)
    const { accessToken, session: derived, grants } = login
    const token = destination.kind === 'print' ? accessToken : null
    const document = { version: 1, session: derived, grants, accessToken: token }
    const path = destination.kind === 'print' ? null : destination.path
    await context.output.result({ ...document, path }, [
      ...(token === null ? [] : [token]),
      ...lines(login, scopeText(scope), path),
    ])
  },
})

type Destination =
  | { readonly kind: 'print' }
  | { readonly kind: 'file' | 'store'; readonly path: string }

function destinationOf(
  { environment }: Context,
  tokenOut: string | undefined,
  configHome: string | undefined,
): Destination {
  if (tokenOut !== undefined && configHome !== undefined) {
    throw usage('Give --token-out or --config-home, not both.', deriveCommand)
  }
  if (tokenOut !== undefined) return { kind: 'file', path: resolvePath(environment, tokenOut) }
  if (configHome === undefined) return { kind: 'print' }
  return { kind: 'store', path: resolvePath(environment, configHome) }
}

/** Sends the request and puts the token where it belongs. */
function delivered(
  context: Context,
  { profile }: OperatorSession,
  destination: Destination,
  request: () => Promise<Login>,
): Promise<Login> {
  switch (destination.kind) {
    case 'print':
      return request()
    case 'file':
      return withSecretFile(destination.path, request, ({ accessToken }) => accessToken)
    case 'store': {
      const store = new ProfileStore(context, destination.path)
      return store.change(context.signal, async (stored) => {
        if (stored !== null && stored.refreshToken !== null) {
          throw usage(`${store.path} is the session of a login, which stays.`, deriveCommand)
        }
        const login = await request()
        store.write(profileOf(login, profile))
        return login
      })
    }
  }
}

function lines({ session, grants }: Login, scope: string, path: string | null): string[] {
  const at = formatTimestamp(BigInt(session.accessExpiresAtMicros))
  const held = grants.flatMap(({ capabilities }) => capabilities)
  const names = [...new Set(held)].sort().join(', ')
  return [
    ...(path === null ? [] : [`The session is in ${path}.`]),
    `${session.sessionId} may ${names} at ${scope} until ${at}.`,
    `End it earlier with \`svc sessions revoke ${session.sessionId}\`.`,
  ]
}

function secondsOf(text: string): number {
  const micros = parseSpan(text)
  const seconds = micros === null ? 0 : Number(micros / MICROS_PER_SECOND)
  if (seconds >= 1 && seconds <= DERIVED_SECONDS_MAX) return seconds
  throw usage('--lifetime needs a time from 1s to 1h.', deriveCommand)
}
