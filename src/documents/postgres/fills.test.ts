import { fillSuite } from '../../../testing/documents/postgres-fills-suite.ts'

fillSuite(20_000, 120_000)
