/** Publication of a Workspace package, and its check without a publication. */
import { checkPackage } from '../../product/workspaces/check.ts'
import { publish } from '../../product/workspaces/publish.ts'
import { PACKAGE_BYTES_MAX } from '../../value/packages/workspace-package.ts'
import { workspaceOperations } from '../../wire/operations/workspace.ts'
import type { PackageChecked } from '../../wire/releases.ts'
import { EXPECTED_HEAD_HEADER, PROVENANCE_HEADER, type Published } from '../../wire/workspace.ts'
import { streamBody } from '../bodies.ts'
import { MANAGEMENT_CODES } from '../errors.ts'
import { readProvenance } from '../provenance.ts'
import type { ProductApp } from './product-app.ts'
import { bind, type Route } from './route.ts'

export const workspaceRoutes: readonly Route<ProductApp>[] = bind(workspaceOperations, {
  async publishWorkspace({
    app: { product },
    actor,
    headers,
    request,
    requestId,
    pace,
    authorized,
  }) {
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

  async checkWorkspace({ app: { product }, query: { against = null }, request, pace }) {
    const frame = streamBody(request, PACKAGE_BYTES_MAX, MANAGEMENT_CODES, pace)
    const checked = await checkPackage(product, { frame, against })
    const served = checked.served.map(({ uses, changes, ...release }) => ({
      ...release,
      uses: [...uses],
      changes: changes.map((change) => ({ ...change, refusals: [...change.refusals] })),
    }))
    const body: PackageChecked = { version: 1, ...checked, checks: [...checked.checks], served }
    return { status: 200, body }
  },
})
