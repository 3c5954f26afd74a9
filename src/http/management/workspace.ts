/** Publication of a Workspace package. */
import { Fault } from '../../errors/fault.ts'
import { type ExpectedHead, publish } from '../../product/workspaces.ts'
import { isId } from '../../value/ids.ts'
import { PACKAGE_BYTES_MAX, PACKAGE_MEDIA_TYPE } from '../../value/workspace-package.ts'
import { EXPECTED_HEAD_HEADER, type Published } from '../../wire/workspace.ts'
import { streamBody } from '../bodies.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import { environmentRoute, type Route } from '../route.ts'
import type { ProductApp } from './product-app.ts'

export const workspaceRoutes: readonly Route<ProductApp>[] = [
  environmentRoute({
    method: 'POST',
    path: '/workspace/publish',
    capability: 'releases:publish',
    body: { mediaType: PACKAGE_MEDIA_TYPE },
    async handle({ app: { product }, actor, request, requestId }) {
      const expectedHead = readExpectedHead(request)
      const published = await product.publications.pass(async () => {
        const frame = streamBody(request, PACKAGE_BYTES_MAX, MANAGEMENT_CODES)
        return publish(product, actor, { frame, expectedHead, requestId })
      })
      const body: Published = { version: 1, ...published }
      return { status: published.replayed ? 200 : 201, body }
    },
  }),
]

/** Two headers arrive joined by a comma, which neither form admits. */
function readExpectedHead(request: Request): ExpectedHead {
  const header = request.headers.get(EXPECTED_HEAD_HEADER)
  if (header === 'empty' || isId('wsr', header)) return header
  throw new Fault('PLATFORM_REQUEST_INVALID', {
    violations: [{ path: EXPECTED_HEAD_HEADER, rule: 'empty or a revision ID, exactly once' }],
  })
}
