/** `svc dev hook`: sends a sample event, signed as by the service, to the running `svc dev`. */

import { Fault, isFault } from '../../../errors/fault.ts'
import { LOCAL_MOUNT, mountPath } from '../../../value/http/mounts.ts'
import { matchRoute } from '../../../value/http/paths.ts'
import {
  HEADER_NAME,
  HOOK_BYTES_MAX,
  type HookManifest,
  type SignatureManifest,
} from '../../../value/http/routes.ts'
import { shellQuoted } from '../../../value/shell/shell-words.ts'
import { parseWrittenJson } from '../../../value/strict-json.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { LocalServer } from '../../../wire/files/local-server.ts'
import { isJson, JSON_MEDIA_TYPE } from '../../../wire/media-types.ts'
import { listFunctions } from '../../../wire/operations/catalogs.ts'
import {
  argument,
  type CommandSpec,
  type Context,
  command,
  option,
  repeatedOption,
} from '../../contexts.ts'
import type { WorkspaceTools } from '../../development/workspace-tools.ts'
import { explained, explanation, explanationOf } from '../../explanations.ts'
import { readIfPresent } from '../../files.ts'
import { requireTools } from '../../packages.ts'
import { type BytesReply, send } from '../../requests/requests.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { secretFrom } from '../../secret-variables.ts'
import { usage } from '../../usage.ts'
import { deliveryIdOf, reportDelivery } from './deliveries.ts'

export const devHookCommand: CommandSpec = command({
  name: 'dev hook',
  summary: 'Send a signed sample event to a hook of the running svc dev',
  details: [
    'The file is signed as the service does it, with the secret in .env.local of the Workspace.',
    'The command waits for the end of the handler and shows a failure with its lines of source.',
    'An event whose ID was sent before is answered and not handled again, as for the service.',
  ],
  positionals: [argument('NAME', 'The hook, a name in httpRoutes of http.ts')],
  options: {
    root: option('DIR', 'The root of svc dev, or a directory in it; by default the working one'),
    file: option('FILE', 'The body: JSON, unless --header names another content-type'),
    header: repeatedOption('NAME:VALUE', 'A header of the service; may be given more than once'),
    path: option('PATH', 'The path below the mount, where that of the hook has :names, or a query'),
    provider: option('SCHEME', 'Check that the hook verifies this signature, such as stripe'),
    'token-env': option('VAR', 'Environment variable with the token, for signature.jwt'),
  },
  examples: [
    'svc dev hook stripe --file event.json',
    'svc dev hook github --file push.json --header x-github-event:push',
  ],
  async run(context, options, [name = '']) {
    const headers = headersOf(options.header)
    const tools = await requireTools(context, 'A signed sample')
    const remote = await openRemote(context, { root: options.root, dev: true })
    const local = remote.local!
    const hook = await findHook(context, remote, { target: local.target, name })
    requireProvider(hook, options.provider)
    const body = bodyOf(context, options.file, { hook, headers })
    const url = `${local.url}${mountPath(LOCAL_MOUNT)}${pathOf(hook, options.path)}`
    const token = tokenOf(context, hook, options['token-env'])
    if (token !== null) headers.set('authorization', `Bearer ${token}`)
    const sample = { hook, headers, body, url }
    const signed = await sign(context, tools, { ...sample, local })
    const sentAt = context.environment.system.nowMillis()
    const request = deliver(context, { ...sample, url: signed }, remote)
    const reply = await context.output.progress(`sending to ${name}`, request)
    const deliveryId = deliveryIdOf(reply)
    await reportDelivery(context, { tools, remote, local, hook, reply, deliveryId, sentAt })
  },
})

function headersOf(given: readonly string[]): Headers {
  const headers = new Headers()
  for (const text of given) {
    const colon = text.indexOf(':')
    const name = text.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    const value = text.slice(colon + 1).trim()
    if (!HEADER_NAME.test(name) || !/^[\t -~]*$/.test(value)) {
      throw usage('--header needs NAME:VALUE, such as x-github-event:push.', devHookCommand)
    }
    headers.append(name, value)
  }
  if (!headers.has('content-type')) headers.set('content-type', JSON_MEDIA_TYPE)
  return headers
}

/** Finds the hook in what is served now, which the last valid save made. */
async function findHook(
  context: Context,
  remote: Remote,
  { target, name }: { readonly target: string; readonly name: string },
): Promise<HookManifest> {
  const request = remote.call(listFunctions, { query: { target }, subjects: { target } })
  const { http = [] } = await context.output.progress('reading the hooks', request)
  const hooks = (http as readonly HookManifest[]).filter(({ kind }) => kind === 'hook')
  const found = hooks.find((hook) => hook.name === name)
  if (found !== undefined) return found
  if (hooks.length > 0) {
    const names = hooks.map((hook) => hook.name).join(', ')
    throw usage(`http.ts has no hook ${name}. It has ${names}.`, devHookCommand)
  }
  const next = 'Declare one in http.ts: `svc docs hooks` is the guide.'
  const detail = 'The Workspace that svc dev serves has no hooks.'
  throw new Fault('CLIENT_USAGE', { detail, cause: explanation({ next }) })
}

function schemeOf({ verify }: HookManifest): SignatureManifest['scheme'] | 'none' {
  return verify?.scheme ?? 'none'
}

function requireProvider(hook: HookManifest, provider: string | undefined): void {
  const scheme = schemeOf(hook)
  if (provider === undefined || provider === scheme) return
  const detail = `The hook ${hook.name} verifies ${scheme}, not ${provider}.`
  throw usage(`${detail} Without --provider it is signed as the hook declares.`, devHookCommand)
}

/** The body, and where it is JSON a check of it. Throws CLIENT_USAGE, CLIENT_FILE_FAILED. */
function bodyOf(
  { environment }: Context,
  file: string | undefined,
  { hook, headers }: { readonly hook: HookManifest; readonly headers: Headers },
): Uint8Array {
  const hasBody = methodOf(hook) !== 'GET'
  if (hasBody !== (file !== undefined)) {
    const rule = hasBody ? 'Give its body with --file FILE' : 'A GET has no --file'
    throw usage(`${rule}: the hook ${hook.name} takes ${methodOf(hook)}.`, devHookCommand)
  }
  if (file === undefined) return new Uint8Array()
  const path = resolvePath(environment, file)
  const bytes = readIfPresent(path, HOOK_BYTES_MAX)
  if (bytes === null) throw new Fault('CLIENT_FILE_FAILED', { detail: `There is no ${path}.` })
  if (isJson(headers.get('content-type'))) requireJson(path, bytes)
  return bytes
}

function requireJson(path: string, bytes: Uint8Array): void {
  try {
    parseWrittenJson(bytes)
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    const at = error.path.replace('$ at', 'at')
    const next =
      'Fix the file. If it is of another type, name that: --header content-type:TYPE, such as ' +
      'application/x-www-form-urlencoded.'
    throw new Fault('CLIENT_FILE_FAILED', {
      detail: `${path} is not JSON: expected ${error.rule} ${at}.`,
      cause: explanation({ next }),
    })
  }
}

/** A body needs another method than GET, so that is taken only if there is no other. */
function methodOf({ methods }: HookManifest): HookManifest['methods'][number] {
  if (methods.includes('POST')) return 'POST'
  return methods.find((method) => method !== 'GET') ?? 'GET'
}

function pathOf(hook: HookManifest, given: string | undefined): string {
  const path = given ?? hook.path
  if (given === undefined && hook.path.includes('/:')) {
    const rule = `Give --path PATH: the hook ${hook.name} is at ${hook.path}`
    throw usage(`${rule}, where each :name stands for a text.`, devHookCommand)
  }
  const [below = ''] = path.split('?', 1)
  if (path.startsWith('/') && matchRoute([hook], methodOf(hook), below)?.route === hook) {
    return path === '/' ? '' : path
  }
  throw usage(`--path is not one of ${hook.path}, the path of ${hook.name}.`, devHookCommand)
}

function tokenOf(
  context: Context,
  hook: HookManifest,
  variable: string | undefined,
): string | null {
  const isOfToken = schemeOf(hook) === 'jwt'
  if (isOfToken && variable === undefined) {
    const rule = 'Give --token-env VAR: only the provider can sign the token'
    throw usage(`${rule} that the hook ${hook.name} verifies.`, devHookCommand)
  }
  if (variable === undefined) return null
  if (isOfToken) return secretFrom(context, devHookCommand, '--token-env', variable)
  throw usage(`The hook ${hook.name} verifies ${schemeOf(hook)}, not a token.`, devHookCommand)
}

interface Sample {
  readonly hook: HookManifest
  readonly headers: Headers
  readonly body: Uint8Array
  readonly url: string
}

/** Adds the headers of the signature, unless they are given. Returns the URL to call. */
async function sign(
  { environment: { system } }: Context,
  tools: WorkspaceTools,
  { hook, headers, body, url, local }: Sample & { readonly local: LocalServer },
): Promise<string> {
  const { verify } = hook
  if (verify === null || verify.scheme === 'jwt') return url
  const signed = await tools.signSample({
    workspaceDirectory: local.workspaceDirectory,
    verify,
    url,
    headers,
    body,
    nowMillis: system.nowMillis(),
    id: `sample_${system.ids.make('req').slice('req_'.length)}`,
  })
  for (const [name, value] of Object.entries(signed.headers)) {
    if (!headers.has(name)) headers.set(name, value)
  }
  return signed.url
}

async function deliver(
  context: Context,
  { hook, headers, body, url }: Sample,
  { directory }: Remote,
): Promise<BytesReply> {
  const { origin, pathname, search } = new URL(url)
  const method = methodOf(hook)
  try {
    return await send<BytesReply>(context, {
      method,
      origin,
      path: `${pathname}${search}`,
      headers: Object.fromEntries(headers),
      contentType: headers.get('content-type')!,
      ...(method !== 'GET' && { body }),
      reply: 'bytes',
      // The failure of a sample is shown at once; services try again.
      replay: 'unsafe',
    })
  } catch (error) {
    if (!isFault(error)) throw error
    const { requestId } = explanationOf(error)
    if (requestId === null) throw error
    const root = `--root ${shellQuoted(directory)}`
    const reason = `Run \`svc logs ${root} --request ${requestId}\`: it has the reason.`
    const failures = `svc http deliveries ${LOCAL_MOUNT} --state failed ${root}`
    // The handler of such a hook has run, and the answer does not name its delivery.
    const isHandled = hook.reply === 'result' && error.code === 'FUNCTION_FAILED'
    const next = isHandled ? `${reason} See the delivery with \`${failures}\`.` : reason
    throw explained(error, { next })
  }
}
