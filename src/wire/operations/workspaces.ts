/** Workspaces as development keys synchronize them, at the application origin. */
import type { TableCode } from '../../errors/codes.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { FreezeRequest, Frozen, WorkspaceState } from '../releases.ts'
import {
  EXPECTED_HEAD_HEADER,
  ExpectedHeadField,
  PROVENANCE_HEADER,
  ProvenanceHeader,
  Published,
} from '../workspace.ts'
import { developmentOperation } from './operation.ts'
import { PUBLISH_DEADLINE_MS, VALIDATE_DEADLINE_MS } from './workspace.ts'

/** Failures of every request with a development key. */
const DEVELOPMENT_ERRORS: readonly TableCode[] = [
  'REQUEST_INVALID',
  'APPLICATION_KEY_REQUIRED',
  'APPLICATION_KEY_INVALID',
  'TARGET_DENIED',
  'ORIGIN_DENIED',
  'ROUTE_NOT_FOUND',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
  'PRODUCT_UNAVAILABLE',
  'PRODUCT_CORRUPT',
]

/** Failures of a request with a body. */
const BODY_ERRORS = ['LIMIT_EXCEEDED', 'MEDIA_TYPE_UNSUPPORTED', 'BUSY'] as const

const WORKSPACE = '/v1/workspaces/:workspace'

export const readWorkspaceHead = developmentOperation({
  method: 'GET',
  path: WORKSPACE,
  name: 'readWorkspaceHead',
  summary: 'Returns the HEAD of a Workspace, and the Project of its packages.',
  replies: { 200: WorkspaceState },
  errors: DEVELOPMENT_ERRORS,
})

export const synchronizeWorkspace = developmentOperation({
  method: 'PUT',
  path: WORKSPACE,
  name: 'synchronizeWorkspace',
  summary: 'Makes a package the HEAD of its Workspace, without validating or serving it.',
  headers: {
    [EXPECTED_HEAD_HEADER]: ExpectedHeadField,
    [PROVENANCE_HEADER]: { optional: ProvenanceHeader },
  },
  body: { mediaType: PACKAGE_MEDIA_TYPE, bytesMax: PACKAGE_BYTES_MAX },
  // Equal bytes with an equal expected HEAD are published only once.
  replay: 'safe',
  replies: { 200: Published, 201: Published },
  errors: [
    ...DEVELOPMENT_ERRORS,
    ...BODY_ERRORS,
    'PRODUCT_CAS_CONFLICT',
    'PRODUCT_INVALID',
    'PRODUCT_STATE_CONFLICT',
  ],
  deadlineMs: PUBLISH_DEADLINE_MS,
})

export const freezeWorkspace = developmentOperation({
  method: 'POST',
  path: `${WORKSPACE}/freeze`,
  name: 'freezeWorkspace',
  summary: 'Validates the Release of the HEAD. With a failed check it is not validated.',
  body: { schema: FreezeRequest },
  replay: 'safe',
  replies: { 200: Frozen },
  errors: [
    ...DEVELOPMENT_ERRORS,
    ...BODY_ERRORS,
    'PRODUCT_CAS_CONFLICT',
    'PRODUCT_NOT_FOUND',
    'PRODUCT_RELEASE_RETIRED',
  ],
  deadlineMs: VALIDATE_DEADLINE_MS,
})
