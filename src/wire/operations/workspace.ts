/** Publication of a Workspace package, and its check without a publication. */
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { CheckQuery, PackageChecked } from '../releases.ts'
import {
  EXPECTED_HEAD_HEADER,
  ExpectedHeadField,
  PROVENANCE_HEADER,
  ProvenanceHeader,
  Published,
} from '../workspace.ts'
import { environmentOperation } from './operation.ts'

/** Milliseconds for a package of 64 MiB at 256 KiB/s and the checks of the server. */
export const PUBLISH_DEADLINE_MS = 300_000
/** Milliseconds to build indexes of stored documents, which takes 10 s for each million. */
export const VALIDATE_DEADLINE_MS = 1_200_000

export const publishWorkspace = environmentOperation({
  method: 'POST',
  path: '/workspace/publish',
  name: 'publishWorkspace',
  summary: 'Publishes a Workspace package as a new Release.',
  capability: 'releases:publish',
  body: { mediaType: PACKAGE_MEDIA_TYPE, bytesMax: PACKAGE_BYTES_MAX },
  headers: {
    [EXPECTED_HEAD_HEADER]: ExpectedHeadField,
    [PROVENANCE_HEADER]: { optional: ProvenanceHeader },
  },
  // Equal bytes with an equal expected HEAD are published only once.
  replay: 'safe',
  replies: { 200: Published, 201: Published },
  errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
  deadlineMs: PUBLISH_DEADLINE_MS,
})

export const checkWorkspace = environmentOperation({
  method: 'POST',
  path: '/workspace/check',
  name: 'checkWorkspace',
  summary: 'Makes the checks of a validation without publishing the package.',
  capability: 'releases:publish',
  query: CheckQuery,
  body: { mediaType: PACKAGE_MEDIA_TYPE, bytesMax: PACKAGE_BYTES_MAX },
  replay: 'safe',
  replies: { 200: PackageChecked },
  errors: ['PRODUCT_INVALID'],
  deadlineMs: VALIDATE_DEADLINE_MS,
})

export const workspaceOperations = { publishWorkspace, checkWorkspace }
