/** A login in the browser: opens the address, waits for the redirect, shows the final page. */
import { isFault } from '../../errors/fault.ts'
import type { Secret } from '../../value/secret.ts'
import type { OidcConfig } from '../../wire/identity/oidc.ts'
import { readOidcConfig } from '../../wire/operations/identity/oidc.ts'
import type { Context } from '../contexts.ts'
import { requestOf } from '../requests/operation-requests.ts'
import { send } from '../requests/requests.ts'
import { failed, validateResponse } from './authorization-responses.ts'
import { newAuthorization, newState, requireSafeConfig } from './authorizations.ts'
import { CallbackListener } from './callbacks.ts'
import { exchangeCode, promisesIssuer } from './providers.ts'

export interface BrowserLogin {
  readonly authenticationOrigin: string
  /** False prints the address instead of opening it. */
  readonly open: boolean
}

/**
 * Passes the external access token to `use`, whose outcome decides the page in the browser. Throws
 * CLIENT_BROWSER_LOGIN_FAILED and what `use` throws.
 */
export async function withBrowserToken<T>(
  context: Context,
  { authenticationOrigin, open }: BrowserLogin,
  use: (token: Secret) => Promise<T>,
): Promise<T> {
  const config = await readConfig(context, authenticationOrigin)
  const { issuer, clientId } = config
  const client = { client_id: clientId }
  const state = newState()
  const listener = await CallbackListener.open(state)
  try {
    const { redirectUri } = listener
    const authorization = await newAuthorization(config, { state, redirectUri })
    // Read while the browser is in use; it may fail before it is awaited.
    const issuerRequired = promisesIssuer(context, issuer)
    issuerRequired.catch(() => {})
    await show(context, authorization.url, open)
    const waiting = listener.waitForResponse(context.signal)
    const callback = await context.output.progress('waiting for the browser', waiting)
    try {
      const server = {
        issuer,
        token_endpoint: config.tokenEndpoint,
        authorization_response_iss_parameter_supported: await issuerRequired,
      }
      const parameters = validateResponse(callback.parameters, { server, client, state })
      const sent = { server, client, parameters, authorization }
      const exchange = exchangeCode(context, config, sent)
      const result = await use(await context.output.progress('asking the provider', exchange))
      await callback.finish('done')
      return result
    } catch (error) {
      await callback.finish('failed')
      throw error
    }
  } finally {
    listener.close()
  }
}

async function readConfig(context: Context, origin: string): Promise<OidcConfig> {
  try {
    const config = await context.output.progress(
      'asking the server',
      send(context, { ...requestOf(readOidcConfig), origin }),
    )
    requireSafeConfig(config, origin)
    return config
  } catch (error) {
    if (!isFault(error, 'PLATFORM_NOT_FOUND')) throw error
    throw failed(`${origin} does not support browser logins.`)
  }
}

async function show({ environment, output }: Context, url: string, open: boolean): Promise<void> {
  if (!open) return output.warn(`Open this address in a browser:\n${url}`)
  await output.note('Opening the browser. Finish the login there.')
  const hint = `No browser could be started. Open this address:\n${url}`
  void environment.openBrowser(url).then(
    (opened) => (opened ? undefined : output.warn(hint)),
    () => output.warn(hint),
  )
}
