import { fillSuite } from '../../../testing/documents/postgres-fills-suite.ts'

fillSuite(1_000_000, 600_000)
