/** Hooks for tests: their manifests, their handlers, and signed requests to them. */

import {
  readConfiguration,
  setConfiguration,
} from '../../src/product/configuration/configuration.ts'
import { changeMount, type MountConfiguration } from '../../src/product/http-mounts/mounts.ts'
import { hmac } from '../../src/system/digests.ts'
import { deliveryHeaders, HOOK_ARGUMENTS, type HookManifest } from '../../src/value/http/routes.ts'
import type { TestGateway } from '../gateways.ts'
import { functionManifest, REQUEST_ID } from '../products.ts'

export const SECRET = 'a secret of GitHub'

/** Returns a hook that GitHub signs. */
export function hookManifest(name: string, more: Partial<HookManifest> = {}): HookManifest {
  const verify = { scheme: 'github', secret: 'GITHUB' } as const
  return {
    kind: 'hook',
    name,
    path: `/${name}`,
    methods: ['POST'],
    maximumBytes: 1_000,
    headers: deliveryHeaders(more.verify === undefined ? verify : more.verify, []),
    verify,
    hasOnce: false,
    function: 'hooks.onEvent',
    ...more,
  }
}

export const handlerManifest = (name: string, kind: 'mutation' | 'action' = 'mutation') =>
  functionManifest(name, {
    kind,
    visibility: 'internal',
    clients: [],
    arguments: HOOK_ARGUMENTS,
    ...(kind === 'action' && { uses: { network: [], secrets: [] } }),
  })

/** Mounts the Channel `production`; returns the new secret part of the path, if any. */
export function mount(
  { harness }: TestGateway,
  name: string,
  configuration: Partial<MountConfiguration> = {},
): string | null {
  const { product, actor, system } = harness
  const { token } = changeMount(product, actor, {
    operationId: system.ids.make('opn'),
    name,
    configuration: { target: 'channel:production', ...configuration },
    expectedRevision: null,
    changedAtMicros: system.nowMicros(),
    requestId: REQUEST_ID,
  })
  return token === null ? null : token.reveal()
}

/** Sets a secret, in place of the value that it has. */
export function setSecret({ harness }: TestGateway, name: string, value: string): void {
  const { product, actor, system } = harness
  const { revision } = readConfiguration(product)
  setConfiguration(product, actor, {
    operationId: system.ids.make('opn'),
    name,
    kind: 'secret',
    value,
    expectedRevision: revision,
    changedAtMicros: system.nowMicros(),
    requestId: REQUEST_ID,
  })
}

interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly secret?: string
  /** Default: an address that all tests share. */
  readonly peer?: string
}

/** Sends a request with the signature of GitHub; without one for a null secret. */
export async function send(
  { application }: Pick<TestGateway, 'application'>,
  path: string,
  { method = 'POST', headers = {}, body = '{}', secret = SECRET, peer = 'peer' }: Sent = {},
): Promise<Response> {
  const digest = hmac('sha256', secret, body).toString('hex')
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS'
  const request = new Request(`https://app.test/v1/http${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      'x-hub-signature-256': `sha256=${digest}`,
      ...headers,
    },
    ...(hasBody && { body }),
  })
  return application.fetch(request, { peer })
}
