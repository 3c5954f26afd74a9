/** Publication of a Workspace package, and its check without a publication. */
import { checkPackage } from '../../product/workspaces/check.ts'
import { publish } from '../../product/workspaces/publish.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { CheckQuery, PackageChecked } from '../../wire/releases.ts'
import {
  EXPECTED_HEAD_HEADER,
  ExpectedHeadField,
  PROVENANCE_HEADER,
  ProvenanceHeader,
  Published,
} from '../../wire/workspace.ts'
import { streamBody } from '../bodies.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import { readProvenance } from '../provenance.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const workspaceRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
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
    replies: { 200: Published, 201: Published },
    errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    async handle({ app: { product }, actor, headers, request, requestId, pace, authorized }) {
      const expectedHead = headers[EXPECTED_HEAD_HEADER]
      const provenance = readProvenance(headers[PROVENANCE_HEADER], 'PLATFORM_REQUEST_INVALID')
      const published = await product.publications.run(async () => {
        const frame = streamBody(request, PACKAGE_BYTES_MAX, MANAGEMENT_CODES, pace)
        const input = { frame, expectedHead, provenance, requestId, authorized }
        return publish(product, actor, input)
      })
      const body: Published = { version: 1, ...published }
      return { status: published.replayed ? 200 : 201, body }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/workspace/check',
    name: 'checkWorkspace',
    summary: 'Makes the checks of a validation without publishing the package.',
    capability: 'releases:publish',
    query: CheckQuery,
    body: { mediaType: PACKAGE_MEDIA_TYPE, bytesMax: PACKAGE_BYTES_MAX },
    replies: { 200: PackageChecked },
    errors: ['PRODUCT_INVALID'],
    async handle({ app: { product }, query: { against = null }, request, pace }) {
      const frame = streamBody(request, PACKAGE_BYTES_MAX, MANAGEMENT_CODES, pace)
      const checked = await checkPackage(product, { frame, against })
      const body: PackageChecked = { version: 1, ...checked, checks: [...checked.checks] }
      return { status: 200, body }
    },
  }),
]
