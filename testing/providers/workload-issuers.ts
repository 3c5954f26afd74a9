/**
 * Issuers of workload tokens on one loopback port, each with discovery and published keys of its
 * own. Their tokens have the headers, claims and lifetimes of the platforms that they stand for.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OidcAlgorithm, OidcProvider } from '../../src/identity/oidc/provider.ts'
import { encodeBase64Url } from '../../src/value/base64url.ts'
import { Secret } from '../../src/value/secret.ts'
import { makeKey, type SigningKey } from './identity-providers.ts'
import { encodePart, signature } from './jwt-issuers.ts'

export const WORKLOAD_AUDIENCE = 'https://manage.example.com'
const REPOSITORY = 'acme/app'
const COMMIT = '9f3182061f1e2cca4702c368cbc039b7dc9d4485'
const PIPELINE = '0184990a-477b-4fa8-9968-496074483c01'

type Claims = Readonly<Record<string, unknown>>

interface Shape {
  readonly issuer: string
  readonly algorithm: OidcAlgorithm
  /** Header parameters beside alg and kid. */
  readonly header: Claims
  readonly discriminator: readonly [claim: string, value: string]
  readonly requiredClaims: Readonly<Record<string, string>>
  readonly lifetimeSeconds: number
  /** Seconds that `nbf` is before `iat`; null without `nbf`. */
  readonly notBefore: number | null
  readonly claims: Claims & { readonly sub: string }
}

export const SHAPES = {
  /** https://docs.github.com/en/actions/reference/security/oidc */
  github: {
    issuer: 'https://token.actions.githubusercontent.com',
    algorithm: 'RS256',
    header: { typ: 'JWT', x5t: 'ykNaY4qM_ta4k2TgZOCEYLkcYlA' },
    discriminator: ['repository_owner_id', '65'],
    requiredClaims: { repository: REPOSITORY, environment: 'production', ref: 'refs/heads/main' },
    lifetimeSeconds: 300,
    notBefore: 600,
    claims: {
      sub: `repo:${REPOSITORY}:environment:production`,
      environment: 'production',
      ref: 'refs/heads/main',
      sha: COMMIT,
      repository: REPOSITORY,
      repository_owner: 'acme',
      actor_id: '12',
      repository_visibility: 'private',
      repository_id: '74',
      repository_owner_id: '65',
      run_id: '1234567890',
      run_number: '10',
      run_attempt: '2',
      runner_environment: 'github-hosted',
      actor: 'octocat',
      workflow: 'deploy',
      head_ref: '',
      base_ref: '',
      event_name: 'push',
      ref_protected: 'true',
      ref_type: 'branch',
      workflow_ref: `${REPOSITORY}/.github/workflows/deploy.yml@refs/heads/main`,
      workflow_sha: COMMIT,
      job_workflow_ref: `${REPOSITORY}/.github/workflows/deploy.yml@refs/heads/main`,
      job_workflow_sha: COMMIT,
    },
  },
  /** https://docs.gitlab.com/ci/secrets/id_token_authentication/ */
  gitlab: {
    issuer: 'https://gitlab.com',
    algorithm: 'RS256',
    header: { typ: 'JWT' },
    discriminator: ['namespace_id', '72'],
    requiredClaims: { project_id: '20', ref_protected: 'true' },
    lifetimeSeconds: 3_600,
    notBefore: 5,
    claims: {
      sub: `project_path:${REPOSITORY}:ref_type:branch:ref:main`,
      namespace_id: '72',
      namespace_path: 'acme',
      project_id: '20',
      project_path: REPOSITORY,
      user_id: '1',
      user_login: 'sample-user',
      user_email: 'sample-user@example.com',
      user_access_level: 'developer',
      pipeline_id: '574',
      pipeline_source: 'push',
      job_id: '302',
      ref: 'main',
      ref_type: 'branch',
      ref_path: 'refs/heads/main',
      ref_protected: 'true',
      groups_direct: ['acme', 'acme/tools'],
      runner_id: 1,
      runner_environment: 'gitlab-hosted',
      sha: COMMIT,
      project_visibility: 'private',
      ci_config_ref_uri: `gitlab.com/${REPOSITORY}//.gitlab-ci.yml@refs/heads/main`,
      ci_config_sha: COMMIT,
    },
  },
  /** https://buildkite.com/docs/agent/cli/reference/oidc, with --subject-claim pipeline_id */
  buildkite: {
    issuer: 'https://agent.buildkite.com',
    algorithm: 'RS256',
    header: {},
    discriminator: ['organization_slug', 'acme'],
    requiredClaims: { pipeline_slug: 'app', build_branch: 'main' },
    lifetimeSeconds: 300,
    notBefore: 0,
    claims: {
      sub: PIPELINE,
      organization_slug: 'acme',
      pipeline_slug: 'app',
      pipeline_id: PIPELINE,
      build_number: 5,
      build_branch: 'main',
      build_tag: null,
      build_commit: COMMIT,
      step_key: 'deploy',
      job_id: '01945ecf-80f0-41e8-9b83-a2970a9305a1',
      agent_id: '01945ecf-8bcf-40a6-9d70-a765db9a0928',
      build_source: 'ui',
      runner_environment: 'buildkite-hosted',
    },
  },
  /** https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/ */
  kubernetes: {
    issuer: 'https://oidc.eks.eu-central-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE',
    algorithm: 'RS256',
    header: {},
    discriminator: ['sub', 'system:serviceaccount:acme:deployer'],
    requiredClaims: {},
    lifetimeSeconds: 3_607,
    notBefore: 0,
    claims: {
      aud: [WORKLOAD_AUDIENCE],
      sub: 'system:serviceaccount:acme:deployer',
      'kubernetes.io': {
        namespace: 'acme',
        node: { name: 'node-1', uid: '646e7c5e-32d6-4d42-9dbd-e504e6cbe6b1' },
        pod: { name: 'deploy-x59gl', uid: '49ad572a-3a3e-4ed6-bcbf-f66ab1d5c92f' },
        serviceaccount: { name: 'deployer', uid: '14ee3fa4-a7e2-420f-9f9a-dbc4507c3798' },
      },
    },
  },
  /** An issuer of JWT access tokens (RFC 9068), for a client without a person. */
  other: {
    issuer: 'https://idp.example.com/workloads',
    algorithm: 'ES256',
    header: { typ: 'at+jwt' },
    discriminator: ['client_id', 'deployer'],
    requiredClaims: { scope: 'deploy' },
    lifetimeSeconds: 600,
    notBefore: null,
    claims: { sub: 'deployer', client_id: 'deployer', scope: 'deploy' },
  },
} as const satisfies Readonly<Record<string, Shape>>

export type Platform = keyof typeof SHAPES
export const PLATFORMS = Object.keys(SHAPES) as Platform[]

export interface WorkloadIssuers {
  readonly origin: string
  readonly providers: readonly OidcProvider[]
  /** Content of SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG. */
  readonly file: object
  /** A token as the platform issues it now; `claims` and `header` replace its own. */
  token(platform: Platform, nowMillis: number, claims?: Claims, header?: Claims): Promise<string>
  /** Publishes new keys of every issuer and signs with them. */
  rotate(): Promise<void>
  close(): Promise<void>
}

export async function workloadIssuers(): Promise<WorkloadIssuers> {
  let serial = 0
  let keys = await makeKeys(serial)
  const server = createServer((request, response) => {
    const [, platform, rest] = /^\/(\w+)\/(.+)$/.exec(request.url ?? '') ?? []
    const key = keys.get(platform as Platform)
    const json = (body: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    if (key === undefined) return response.writeHead(404).end()
    if (rest === 'jwks') return json({ keys: [key.jwk] })
    const { issuer } = SHAPES[platform as Platform]
    return json({ issuer, jwks_uri: `${originOf(server)}/${platform}/jwks` })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = originOf(server)
  const providers = PLATFORMS.map((platform) => providerOf(platform, origin))
  return {
    origin,
    providers,
    file: { version: 1, providers: providers.map(fileEntry) },
    token: (platform, nowMillis, claims = {}, header = {}) =>
      sign(keys.get(platform)!, platform, { nowMillis, claims, header }),
    rotate: async () => {
      keys = await makeKeys(++serial)
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function makeKeys(serial: number): Promise<Map<Platform, SigningKey>> {
  const keys = new Map<Platform, SigningKey>()
  for (const platform of PLATFORMS) {
    const kid = `${platform}-key-${serial}`
    keys.set(platform, await makeKey(kid, SHAPES[platform].algorithm))
  }
  return keys
}

function originOf(server: ReturnType<typeof createServer>): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function providerOf(platform: Platform, origin: string): OidcProvider {
  const { issuer, algorithm, header, discriminator, requiredClaims }: Shape = SHAPES[platform]
  return {
    providerId: platform,
    issuer,
    discoveryUrl: `${origin}/${platform}/.well-known/openid-configuration`,
    audience: WORKLOAD_AUDIENCE,
    allowedOrigins: [origin],
    discriminatorClaim: discriminator[0],
    discriminatorValue: discriminator[1],
    algorithm,
    requiredType: typeof header.typ === 'string' ? header.typ : null,
    subjectPepper: new Secret(encodeBase64Url(new Uint8Array(32).fill(11))),
    nativeClient: null,
    allowLoopbackHttp: true,
    isWorkload: true,
    requiredClaims,
  }
}

function fileEntry(provider: OidcProvider): object {
  const { isWorkload: _, nativeClient: _client, requiredType, ...fields } = provider
  const subjectPepper = provider.subjectPepper.reveal()
  return { ...fields, subjectPepper, ...(requiredType !== null && { requiredType }) }
}

async function sign(
  key: SigningKey,
  platform: Platform,
  given: { readonly nowMillis: number; readonly claims: Claims; readonly header: Claims },
): Promise<string> {
  const shape: Shape = SHAPES[platform]
  const iat = Math.floor(given.nowMillis / 1000)
  const header = { alg: shape.algorithm, kid: key.jwk.kid, ...shape.header, ...given.header }
  const claims = {
    iss: shape.issuer,
    aud: WORKLOAD_AUDIENCE,
    jti: randomUUID(),
    iat,
    exp: iat + shape.lifetimeSeconds,
    ...(shape.notBefore !== null && { nbf: iat - shape.notBefore }),
    ...shape.claims,
    ...given.claims,
  }
  const input = [header, claims].map(encodePart).join('.')
  return `${input}.${await signature(key, input)}`
}
