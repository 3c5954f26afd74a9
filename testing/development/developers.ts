/** Developers who change Workspaces with development keys, over a gateway with a real Product. */
import { listClients } from '../../src/product/application-clients/application-clients.ts'
import {
  listCredentials,
  revokeCredential,
} from '../../src/product/application-clients/application-keys.ts'
import { readStatus } from '../../src/product/environments/status.ts'
import {
  type EnvironmentConfiguration,
  findEnvironment,
  updateEnvironment,
} from '../../src/storage/control/environment.ts'
import { PACKAGE_MEDIA_TYPE } from '../../src/value/packages/workspace-package.ts'
import type { Json } from '../../src/value/strict-json.ts'
import type { Frozen, WorkspaceState } from '../../src/wire/releases.ts'
import type { Published } from '../../src/wire/workspace.ts'
import { openTestGateway, type TestGateway } from '../gateways.ts'
import { functionManifest, makePackage, REQUEST_ID, type WorkspaceInput } from '../products.ts'

const FUNCTIONS = [functionManifest('one.read')]
/** A package whose code declares what its manifest says. */
export const CHAT = { workspace: 'chat', functions: FUNCTIONS }
export const UNKNOWN_REVISION = 'wsr_01JZ0000000000000000000000'

export interface Sent {
  readonly key?: string | null
  /** Headers to replace; null removes one. */
  readonly headers?: Readonly<Record<string, string | null>>
  readonly body?: BodyInit
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The members of the JSON body. */
  readonly body: Published &
    Frozen &
    WorkspaceState & { readonly error?: { readonly code: string } }
  /** Status and code of a failure, else the status alone. */
  readonly outcome: string
}

export class Developers {
  /** The development key of every request that names no other. */
  key: string
  readonly gateway: TestGateway
  readonly #configured: EnvironmentConfiguration
  #count = 0

  private constructor(gateway: TestGateway) {
    this.gateway = gateway
    this.key = gateway.issueKey('development')
    this.#configured = gateway.harness.root.control.read(findEnvironment)!.configuration
    this.describeAs(FUNCTIONS)
  }

  static async open(): Promise<Developers> {
    return new Developers(await openTestGateway({ functions: FUNCTIONS, tables: [], handlers: {} }))
  }

  close(): Promise<void> {
    return this.gateway.close()
  }

  /** Restores the Environment and the engine after a test. */
  reset(): void {
    this.setEnvironment({})
    this.describeAs(FUNCTIONS)
  }

  setEnvironment(
    change: Partial<EnvironmentConfiguration>,
    lifecycle: 'active' | 'archived' = 'active',
  ): void {
    this.gateway.harness.root.control.transaction((tx) => {
      const configuration = { ...this.#configured, ...change }
      updateEnvironment(tx, { ...findEnvironment(tx)!, configuration, lifecycle })
    })
  }

  /** Sets what the code declares; `meanwhile` runs while it is loaded. */
  describeAs(functions: typeof FUNCTIONS, meanwhile: () => unknown = () => undefined): void {
    this.gateway.harness.engine.describe = async () => {
      await meanwhile()
      return { functions, tables: [] } as unknown as Json
    }
  }

  /** Runs `work` with a new key, which `work` may revoke. */
  async withOwnKey<T>(work: (revoke: () => void) => Promise<T>): Promise<T> {
    const { key } = this
    this.key = this.gateway.issueKey('development')
    try {
      return await work(() => this.revokeNewest())
    } finally {
      this.key = key
    }
  }

  /** Revokes the key that was issued last. */
  revokeNewest(): void {
    const { product, actor } = this.gateway.harness
    const clientId = listClients(product)
      .map((client) => client.clientId)
      .toSorted()
      .at(-1)!
    const { credentialId } = listCredentials(product, clientId)[0]!
    revokeCredential(product, actor, { clientId, credentialId, requestId: REQUEST_ID })
  }

  async send(method: string, path: string, sent: Sent = {}): Promise<Answer> {
    const { key = this.key, body } = sent
    const headers = new Headers()
    if (key !== null) headers.set('x-service-key', key)
    for (const [name, text] of Object.entries(sent.headers ?? {})) {
      if (text !== null) headers.set(name, text)
    }
    const url = `http://app.test/v1/workspaces/${path}`
    const request = new Request(url, { method, headers, ...(body !== undefined && { body }) })
    const response = await this.gateway.application.fetch(request)
    const answered = (await response.json()) as Answer['body']
    const { error } = answered
    const outcome = error === undefined ? `${response.status}` : `${response.status} ${error.code}`
    return { status: response.status, headers: response.headers, body: answered, outcome }
  }

  put(expectedHead: string, content: WorkspaceInput = CHAT, sent: Sent = {}): Promise<Answer> {
    const headers = { 'x-service-expected-head': expectedHead, 'content-type': PACKAGE_MEDIA_TYPE }
    return this.send('PUT', content.workspace ?? 'chat', {
      body: makePackage(content) as BodyInit,
      ...sent,
      headers: { ...headers, ...sent.headers },
    })
  }

  freeze(revisionId: string, workspace = 'chat', sent: Sent = {}): Promise<Answer> {
    const body = JSON.stringify({ version: 1, revisionId })
    const headers = { 'content-type': 'application/json' }
    return this.send('POST', `${workspace}/freeze`, { body, headers, ...sent })
  }

  async headOf(workspace: string): Promise<WorkspaceState['head']> {
    return (await this.send('GET', workspace)).body.head
  }

  /** Returns the content of a Workspace that no other test has. */
  unused() {
    this.#count += 1
    return { ...CHAT, workspace: `fresh-${this.#count}` }
  }

  /** Synchronizes a new Workspace. */
  async synchronized() {
    const content = this.unused()
    const { revisionId, releaseId } = (await this.put('empty', content)).body
    return { content, workspace: content.workspace, revisionId, releaseId }
  }

  /** Everything that a development key must not change. */
  served() {
    const { channels, servingPolicy } = readStatus(this.gateway.harness.product)
    return { channels, servingPolicy }
  }
}
