import { defineSchema } from 'svc'

export default defineSchema({})
