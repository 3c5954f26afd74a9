/** Publication of a Workspace package. */
import { publish } from '../../product/workspaces/publish.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/packages/workspace-package.ts'
import { EXPECTED_HEAD_HEADER, ExpectedHeadField, Published } from '../../wire/workspace.ts'
import { streamBody } from '../bodies.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import type { ProductApp } from './product-app.ts'
import { environmentRoute, type Route } from './route.ts'

export const workspaceRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'POST',
    path: '/workspace/publish',
    name: 'publishWorkspace',
    summary: 'Publishes a Workspace package as a new Release.',
    capability: 'releases:publish',
    body: { mediaType: PACKAGE_MEDIA_TYPE },
    headers: { [EXPECTED_HEAD_HEADER]: ExpectedHeadField },
    replies: { 200: Published, 201: Published },
    errors: ['PRODUCT_CAS_CONFLICT', 'PRODUCT_INVALID', 'PRODUCT_STATE_CONFLICT'],
    async handle({ app: { product }, actor, headers, request, requestId, pace, authorized }) {
      const expectedHead = headers[EXPECTED_HEAD_HEADER]
      const published = await product.publications.run(async () => {
        const frame = streamBody(request, PACKAGE_BYTES_MAX, MANAGEMENT_CODES, pace)
        return publish(product, actor, { frame, expectedHead, requestId, authorized })
      })
      const body: Published = { version: 1, ...published }
      return { status: published.replayed ? 200 : 201, body }
    },
  }),
]
