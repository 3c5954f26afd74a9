/**
 * `svc login`: exchanges an invitation code, a browser login or a token of an identity provider for
 * a session of this machine. Codes and tokens are never arguments.
 */
import { Fault, isFault } from '../../errors/fault.ts'
import { Secret } from '../../value/secret.ts'
import { exchangeCode } from '../../wire/operations/identity/auth.ts'
import { logInExternally } from '../../wire/operations/identity/oidc.ts'
import {
  type CommandSpec,
  type Context,
  command,
  flag,
  option,
  requiredOption,
} from '../contexts.ts'
import { explained } from '../explanations.ts'
import { isExternalToken } from '../oidc/tokens.ts'
import { ALLOW_LOOPBACK_HTTP, LOCAL_ORIGIN, parseOrigin } from '../origins.ts'
import { requestOf } from '../requests/operation-requests.ts'
import { secretFrom } from '../secret-variables.ts'
import { discover, logIn } from '../sessions/logins.ts'
import type { LoginOrigins } from '../sessions/sessions.ts'
import { usage } from '../usage.ts'

const INVITATION_CODE = /^rk_inv_v1_[A-Za-z0-9_-]{43}$/

const ASK_FOR_INVITATION =
  'Ask an owner for a new invitation (`svc invite`), then log in with its code.'
const UNLINKED = {
  detail: 'The token is not valid for this server, or this person never logged in with it before.',
  next:
    'For the first login of a person add --code-env VAR with the code of an invitation. A job ' +
    'needs an invitation that names it (`svc invite --workload`) and a token that is not used yet.',
}
const REJECTED_WITH_CODE = {
  detail: 'The token is not valid for this server, or the code is wrong, used or expired.',
  next: ASK_FOR_INVITATION,
}

export const loginCommand: CommandSpec = command({
  name: 'login',
  summary: 'Log this machine in, with an invitation code or an identity provider',
  details: [
    'An invitation code works once. It is read from the environment variable that --code-env',
    'names, or typed on a terminal, which does not show it. --browser logs in at the identity',
    'provider of the server; --oidc-token-env takes an access token of that provider. The first',
    'such login of a person also needs --code-env. The token is sent to the server and not stored.',
    'A job logs in with the token of its platform, which works once; its session lasts ten minutes',
    'and never replaces that of a person, unless SERVICE_CONFIG_HOME or CI is set. Any other',
    'login replaces the stored session.',
    `ORIGIN is HTTPS, or exactly ${LOCAL_ORIGIN} for a local server; with`,
    `${ALLOW_LOOPBACK_HTTP}=true any port of http://127.0.0.1 and http://[::1] is accepted.`,
  ],
  options: {
    url: requiredOption('ORIGIN', 'Origin of the management service'),
    device: option('NAME', 'Name of the session, such as the machine'),
    'code-env': option('VAR', 'Environment variable that holds the invitation code'),
    browser: flag('Log in at the identity provider with a browser'),
    'no-open': flag('With --browser: print the address on stderr instead of opening it'),
    'oidc-token-env': option(
      'VAR',
      'Environment variable that holds an access token of the provider',
    ),
  },
  examples: [
    `SVC_CODE=... svc login --url ${LOCAL_ORIGIN} --code-env SVC_CODE`,
    'svc login --url https://manage.example.com --browser',
    'svc login --url https://manage.example.com --oidc-token-env SVC_OIDC_TOKEN',
  ],
  async run(context, options) {
    const { device, browser, 'oidc-token-env': tokenVariable, 'code-env': codeVariable } = options
    const open = !options['no-open']
    const origin = parseOrigin(context.environment, options.url)
    if (browser && tokenVariable !== undefined) {
      throw usage('Give --browser or --oidc-token-env, not both.', loginCommand)
    }
    if (!open && !browser) throw usage('--no-open needs --browser.', loginCommand)
    const code = codeVariable === undefined ? null : codeFrom(context, codeVariable)
    const login = { origin, device, code }
    if (browser) return browserLogin(context, login, open)
    if (tokenVariable !== undefined) return tokenLogin(context, login, tokenVariable)
    return invitationLogin(context, login)
  },
})

interface LoginOptions {
  readonly origin: string
  readonly device: string | undefined
  readonly code: Secret | null
}

async function invitationLogin(context: Context, login: LoginOptions): Promise<void> {
  if (login.code === null) requireTerminal(context)
  const origins = await discover(context, login.origin, 'invitation')
  const code = login.code ?? (await askForCode(context))
  const body = { ...bodyOf(login), code: code.reveal() }
  await logIn(context, origins, requestOf(exchangeCode, { body })).catch((error) => {
    if (!isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) throw error
    throw explained(error, {
      detail: 'The invitation code is wrong, used or expired.',
      next: ASK_FOR_INVITATION,
    })
  })
}

async function browserLogin(context: Context, login: LoginOptions, open: boolean): Promise<void> {
  const origins = await discover(context, login.origin, 'browser_oidc')
  const { authenticationOrigin } = origins
  // The protocol library is large, and no other command needs it.
  const { withBrowserToken } = await import('../oidc/browser-logins.ts')
  await withBrowserToken(context, { authenticationOrigin, open }, (token) =>
    externalLogin(context, { ...login, origins, token }),
  )
}

async function tokenLogin(context: Context, login: LoginOptions, variable: string): Promise<void> {
  const text = secretFrom(context, loginCommand, '--oidc-token-env', variable)
  if (!isExternalToken(text)) {
    throw usage(`The variable ${variable} does not hold a bearer token.`, loginCommand)
  }
  const origins = await discover(context, login.origin, 'helper_token')
  await externalLogin(context, { ...login, origins, token: new Secret(text) })
}

async function externalLogin(
  context: Context,
  login: LoginOptions & { readonly origins: LoginOrigins; readonly token: Secret },
): Promise<void> {
  const { origins, token: bearer } = login
  try {
    const request = requestOf(logInExternally, { body: bodyOf(login) })
    await logIn(context, origins, { ...request, bearer })
  } catch (error) {
    if (!isFault(error, 'PLATFORM_AUTHENTICATION_FAILED')) throw error
    throw explained(error, login.code === null ? UNLINKED : REJECTED_WITH_CODE)
  }
}

function bodyOf({ code, device }: Pick<LoginOptions, 'code' | 'device'>) {
  return { code: code?.reveal(), deviceName: device }
}

function codeFrom(context: Context, variable: string): Secret {
  const text = secretFrom(context, loginCommand, '--code-env', variable)
  return invitationCode(text, `The variable ${variable}`)
}

function requireTerminal({ environment, output }: Context): void {
  if (environment.stdin.isTTY && environment.stderr.isTTY && !output.json) return
  throw usage(
    'There is no terminal to type the code on. Pass it with --code-env VAR.',
    loginCommand,
  )
}

async function askForCode({ environment, output }: Context): Promise<Secret> {
  await output.prompt('Invitation code: ')
  const line = await environment.stdin.readLine({ echo: false })
  if (line === null) throw new Fault('CLIENT_INTERRUPTED')
  return invitationCode(line.trim(), 'The typed text')
}

function invitationCode(text: string, where: string): Secret {
  if (!INVITATION_CODE.test(text)) {
    throw usage(`${where} is not an invitation code (rk_inv_v1_...).`, loginCommand)
  }
  return new Secret(text)
}
