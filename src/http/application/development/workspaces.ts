/**
 * The routes of development keys: the HEAD of a Workspace, its synchronization and its freeze. The
 * steps are Environment, key, form, then the rule, which checks the first two with its commit too.
 */
import { Fault } from '../../../errors/fault.ts'
import {
  type Developer,
  freeze,
  readWorkspace,
  requireSynchronizable,
  synchronize,
} from '../../../product/workspaces/synchronize.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../../value/packages/workspace-package.ts'
import { parseStrictJson } from '../../../value/strict-json.ts'
import { JSON_BODY_BYTES_MAX } from '../../../wire/operations/operation.ts'
import { read } from '../../../wire/reading/read.ts'
import { FreezeRequest, type Frozen, type WorkspaceState } from '../../../wire/releases.ts'
import {
  EXPECTED_HEAD_HEADER,
  ExpectedHeadField,
  PROVENANCE_HEADER,
  type Published,
  WorkspaceName,
} from '../../../wire/workspace.ts'
import { isCompressed, readBody, requireJson, streamBody } from '../../bodies.ts'
import { APPLICATION_CODES } from '../../errors.ts'
import { readProvenance } from '../../provenance.ts'
import { authenticate, KEY_HEADER } from '../callers.ts'
import type { Gateway } from '../gateway.ts'
import type { Incoming } from '../incoming.ts'

export async function readHead(
  gateway: Gateway,
  incoming: Incoming,
  segment: string,
): Promise<Response> {
  requireDeveloper(gateway, incoming)
  const state = readWorkspace(gateway.workspaces, parseWorkspace(segment))
  return answer(200, { version: 1, ...state } satisfies WorkspaceState)
}

export async function receivePackage(
  gateway: Gateway,
  incoming: Incoming,
  segment: string,
): Promise<Response> {
  const developer = requireDeveloper(gateway, incoming)
  const workspace = parseWorkspace(segment)
  const { request, requestId } = incoming
  const { headers } = request
  const head = headers.get(EXPECTED_HEAD_HEADER)
  const expectedHead = read(ExpectedHeadField, head, 'REQUEST_INVALID', EXPECTED_HEAD_HEADER)
  const provenance = readProvenance(headers.get(PROVENANCE_HEADER), 'REQUEST_INVALID')
  const mediaType = headers.get('content-type')?.toLowerCase()
  if (mediaType !== PACKAGE_MEDIA_TYPE || isCompressed(headers)) {
    const detail = `content-type: ${PACKAGE_MEDIA_TYPE}, not compressed`
    throw new Fault('MEDIA_TYPE_UNSUPPORTED', { detail })
  }
  const { pace } = gateway.transfers
  const frame = streamBody(request, PACKAGE_BYTES_MAX, APPLICATION_CODES, pace)
  const input = { workspace, frame, expectedHead, provenance, requestId }
  const published = await synchronize(gateway.workspaces, developer, input)
  const body: Published = { version: 1, ...published }
  return answer(published.replayed ? 200 : 201, body)
}

export async function freezeHead(
  gateway: Gateway,
  incoming: Incoming,
  segment: string,
): Promise<Response> {
  const developer = requireDeveloper(gateway, incoming)
  const workspace = parseWorkspace(segment)
  const { request, requestId, binding } = incoming
  requireJson(request, APPLICATION_CODES)
  const { transfers } = gateway
  const bytes = await readBody(request, JSON_BODY_BYTES_MAX, APPLICATION_CODES, transfers, incoming)
  const { revisionId } = read(FreezeRequest, parseStrictJson(bytes), 'REQUEST_INVALID')
  // Building indexes over the stored documents may take minutes.
  binding.takeTime?.()
  try {
    const input = { workspace, revisionId, requestId }
    const { releaseId, state, checks } = await freeze(gateway.workspaces, developer, input)
    return answer(200, { version: 1, releaseId, state, checks: [...checks] } satisfies Frozen)
  } finally {
    binding.returnTime?.()
  }
}

/**
 * Throws ROUTE_NOT_FOUND where the Environment is not for development, for any caller; UNAVAILABLE,
 * APPLICATION_KEY_REQUIRED, APPLICATION_KEY_INVALID, RATE_LIMITED, and TARGET_DENIED for a key of
 * another kind. A development key has the scope `workspace` and no other.
 */
function requireDeveloper(gateway: Gateway, incoming: Incoming): Developer {
  requireSynchronizable(gateway.workspaces)
  const { kind, credentialId } = authenticate(gateway, incoming)
  if (kind !== 'development') {
    throw new Fault('TARGET_DENIED', { detail: `a ${kind} key may not change a Workspace` })
  }
  const key = incoming.request.headers.get(KEY_HEADER)!
  const requireActive = (): void => {
    if (gateway.authenticateKey(key) !== null) return
    throw new Fault('APPLICATION_KEY_INVALID', { detail: gateway.explainKey(key).reason })
  }
  return { credentialId, requireActive }
}

/** Throws REQUEST_INVALID. */
function parseWorkspace(segment: string): string {
  return read(WorkspaceName, segment, 'REQUEST_INVALID', 'url')
}

function answer(status: 200 | 201, body: object): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}
